package consulstore_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
	"github.com/quorumlock/quorum/storetest"
)

// TestConformanceConsul runs the suite in real time, all checks side by side on
// one server, each under a prefix of its own.
func TestConformanceConsul(t *testing.T) {
	node := testserver.Consul(t)
	c := client(t, node.Addr)
	var prefixes sync.Map
	var n atomic.Int32
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			prefix := fmt.Sprintf("check/%d", n.Add(1))
			s := store(t, c, consulstore.Prefix(prefix))
			prefixes.Store(s, prefix)
			return s
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			prefix, _ := prefixes.Load(first)
			return store(t, client(t, node.Addr), consulstore.Prefix(prefix.(string)))
		},
		Parallel: true,
	})
}

// twice sends every transaction again after its answer came, and passes on the
// first, as a network does that delivers a request a second time.
type twice struct{ http.Transport }

func (d *twice) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/v1/txn" {
		return d.Transport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	first, err := d.Transport.RoundTrip(r)
	if err == nil {
		again := r.Clone(r.Context())
		again.Body = io.NopCloser(bytes.NewReader(body))
		if second, err := d.Transport.RoundTrip(again); err == nil {
			_ = second.Body.Close()
		}
	}
	return first, err
}

// TestDoubledTransactionsChangeNothing: the first copy wrote what the second
// compares.
func TestDoubledTransactionsChangeNothing(t *testing.T) {
	node := testserver.Consul(t)
	transport := &twice{http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := api.NewClient(&api.Config{Address: node.Addr, HttpClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	s := store(t, c)
	declareNew(t, s)
	for last, n := int64(0), 0; n < 5; n++ {
		a := ask("k", owner())
		g := mustAcquire(t, s, a)
		if last > 0 && g.Token != last+1 {
			t.Errorf("token %d after %d", g.Token, last)
		}
		a.Floor = g.Token + 5
		if last = mustExtend(t, s, a).Token; last != g.Token+5 {
			t.Errorf("token %d after a raise from %d by 5", last, g.Token)
		}
		mustRelease(t, s, a)
		wantOutcome(t, s.Release(t.Context(), a), quorum.OutcomeNotHeld)
	}
}

package consulstore_test

import (
	"context"
	"crypto/rand"
	"flag"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// minTTL is what the servers of most tests take, so that ends can be waited
// for: a vote of it is gone after 2 s.
const minTTL = time.Second

// TestMain lets more checks run side by side than there are cores: they wait
// for sessions to end far more than they work.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "4"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// counter counts the requests of a client.
type counter struct {
	http.Transport
	n atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.Transport.RoundTrip(r)
}

// client returns a client of a server, whose connections are closed with the test.
func client(t testing.TB, addr string) *api.Client {
	t.Helper()
	c, _ := countedClient(t, addr)
	return c
}

func countedClient(t testing.TB, addr string) (*api.Client, *counter) {
	t.Helper()
	transport := &counter{Transport: http.Transport{MaxIdleConnsPerHost: 64}}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := api.NewClient(&api.Config{Address: addr, HttpClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	return c, transport
}

func store(t testing.TB, c *api.Client, options ...consulstore.Option) *consulstore.Store {
	t.Helper()
	s, err := consulstore.New("a", c, append([]consulstore.Option{consulstore.MinTTL(minTTL)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// owner returns a new owner in its first attempt.
func owner() quorum.Owner {
	o := quorum.Owner{Attempt: 1}
	_, _ = rand.Read(o.ID[:])
	return o
}

// maxTTL is long enough for a busy machine, and short enough to be waited for:
// a vote and a quarantine of it are over after 6 s.
const maxTTL = 3 * time.Second

// ask is a request of the set that all these tests are.
func ask(key string, o quorum.Owner) quorum.Request {
	return quorum.Request{
		Key: key, Owner: o, TTL: maxTTL, MaxTTL: maxTTL, Limit: 10 * time.Second, Set: 0xfeed, Label: "tester",
	}
}

// ending is ask for a vote that ends soon.
func ending(key string, o quorum.Owner) quorum.Request {
	r := ask(key, o)
	r.TTL = minTTL
	return r
}

// fresh is a store of a server that was declared new. The test runs beside
// others: they wait more than they work.
func fresh(t *testing.T) (*consulstore.Store, *testserver.ConsulNode) {
	t.Helper()
	t.Parallel()
	node := testserver.Consul(t)
	s := store(t, client(t, node.Addr))
	declareNew(t, s)
	return s, node
}

// declareNew ends the quarantine that every server begins with.
func declareNew(t testing.TB, s *consulstore.Store) {
	t.Helper()
	r := ask("", quorum.Owner{})
	step, err := s.ReadStep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if step.Quarantine == "" {
		t.Fatal("a server that was never used is not in quarantine")
	}
	if err := s.Raise(t.Context(), r, quorum.Raise{Quarantine: step.Quarantine, Fresh: true}); err != nil {
		t.Fatal(err)
	}
}

func mustAcquire(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire %q: %v", r.Key, err)
	}
	return g
}

func mustExtend(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Extend(t.Context(), r)
	if err != nil {
		t.Fatalf("extend %q: %v", r.Key, err)
	}
	return g
}

func mustRelease(t testing.TB, s quorum.Store, r quorum.Request) {
	t.Helper()
	if err := s.Release(context.WithoutCancel(t.Context()), r); err != nil {
		t.Fatalf("release %q: %v", r.Key, err)
	}
}

// wantOutcome fails unless err counts as want.
func wantOutcome(t testing.TB, err error, want quorum.Outcome) {
	t.Helper()
	if got := quorum.OutcomeOf(err); got != want {
		t.Fatalf("outcome %v (%v), want %v", got, err, want)
	}
}

// await polls for a condition, within a bound.
func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

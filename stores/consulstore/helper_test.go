package consulstore_test

import (
	"flag"
	"net/http"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
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

// maxTTL is long enough for a busy machine, and short enough to be waited for:
// a vote and a quarantine of it are over after 6 s.
const maxTTL = 3 * time.Second

// ask is a request of the set that all these tests are.
func ask(key string, o quorum.Owner) quorum.Request {
	return quorum.Request{
		Key: key, Owner: o, TTL: maxTTL, MaxTTL: maxTTL, Limit: 10 * time.Second, Set: 0xfeed, Label: "tester",
	}
}

// What all stores' tests share.
var (
	owner       = acceptance.Owner
	mustAcquire = acceptance.MustAcquire
	mustExtend  = acceptance.MustExtend
	mustRelease = acceptance.MustRelease
	wantOutcome = acceptance.WantOutcome
	await       = acceptance.Await
)

// declareNew ends the quarantine that every server begins with.
func declareNew(t testing.TB, s *consulstore.Store) {
	t.Helper()
	acceptance.DeclareNew(t, s, ask("", quorum.Owner{}))
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

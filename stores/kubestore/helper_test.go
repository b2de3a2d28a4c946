package kubestore_test

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordination "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/kubestore"
)

const namespace = "locks"

// documented is the Role that docs/stores.md asks for.
func documented(t testing.TB) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	_, role, _ := strings.Cut(string(page), "```yaml\napiVersion: rbac")
	role, _, ok := strings.Cut("apiVersion: rbac"+role, "```")
	if !ok {
		t.Fatal("docs/stores.md has no Role")
	}
	return role
}

// open opens a store by its DSN, as a user of the documented Role, closed with
// the test.
func open(t testing.TB, kubeconfig string, settings ...string) *kubestore.Store {
	t.Helper()
	query := url.Values{"kubeconfig": {kubeconfig}, "name": {"a"}}
	for i := 0; i < len(settings); i += 2 {
		query.Set(settings[i], settings[i+1])
	}
	space := query.Get("namespace")
	query.Del("namespace")
	if space == "" {
		space = namespace
	}
	dsn := url.URL{Scheme: "kube", Host: space, RawQuery: query.Encode()}
	s, err := kubestore.Opener().Open(t.Context(), &dsn)
	if err != nil {
		t.Fatal(err)
	}
	store := s.(*kubestore.Store)
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// counter counts the requests of a client.
type counter struct {
	http.RoundTripper
	n atomic.Int64
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// client is one as a user has it, who may do everything, with a transport of the
// test's around its own.
func client(t testing.TB, node *testserver.LeasesNode, around func(http.RoundTripper) http.RoundTripper) rest.Interface {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := rest.RESTClientFor(&rest.Config{
		Host: "https://" + node.Addr, BearerToken: node.Admin, TLSClientConfig: rest.TLSClientConfig{CAFile: node.CA},
		APIPath: "/apis", QPS: -1, WrapTransport: around,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &coordination.SchemeGroupVersion,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func store(t testing.TB, c rest.Interface, options ...kubestore.Option) *kubestore.Store {
	t.Helper()
	s, err := kubestore.New("a", c, namespace, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
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

const maxTTL = 8 * time.Second

// ask is a request of the set that all these tests are.
func ask(key string, o quorum.Owner) quorum.Request {
	return quorum.Request{
		Key: key, Owner: o, TTL: maxTTL, MaxTTL: maxTTL, Limit: 10 * time.Second, Set: 0xfeed, Label: "tester",
	}
}

// times gives a store clocks that only the test moves.
type times struct {
	clock.Manual
	wall time.Time
}

func newTimes(s *kubestore.Store) *times {
	x := &times{wall: time.Unix(1_764_000_060, 0)}
	s.SetClock(x)
	s.SetWall(func() time.Time { return x.wall })
	return x
}

// declareNew ends the quarantine that every store begins with.
func declareNew(t testing.TB, s *kubestore.Store) {
	t.Helper()
	acceptance.DeclareNew(t, s, ask("", quorum.Owner{}))
}

// contended demands a refusal because of another owner, and returns it.
func contended(t testing.TB, s quorum.Store, r quorum.Request) *quorum.RefusedError {
	t.Helper()
	_, err := s.Acquire(t.Context(), r)
	wantOutcome(t, err, quorum.OutcomeContended)
	var refused *quorum.RefusedError
	if !errors.As(err, &refused) {
		t.Fatalf("a refusal is a %T", err)
	}
	return refused
}

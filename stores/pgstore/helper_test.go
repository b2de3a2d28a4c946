//go:build linux

package pgstore_test

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// What is granted by ask outlasts a test on any machine. A vote or quarantine of
// brief is over soon, so that its end can be waited for.
const maxTTL, briefMaxTTL = time.Minute, 400 * time.Millisecond

// schemas are numbered, so that tests share servers and do not meet.
var schemas atomic.Int32

func newSchema() string { return fmt.Sprintf("test_%d", schemas.Add(1)) }

// shared is a server for all tests that do it no harm.
func shared(t testing.TB) *testserver.PostgresNode {
	t.Helper()
	starting.Do(func() {
		keeper := &lasting{TB: t}
		atExit = append(atExit, keeper.end)
		// What runs by itself would take transaction ids, which a test counts.
		common = testserver.Postgres(keeper, testserver.PostgresConfig("autovacuum = off"))
	})
	if common == nil {
		t.Fatal("the server that the tests share did not start")
	}
	return common
}

var (
	starting sync.Once
	common   *testserver.PostgresNode
	atExit   []func()
)

// lasting is a test whose cleanups wait for the end of all tests.
type lasting struct {
	testing.TB
	cleanups []func()
}

func (l *lasting) Cleanup(f func()) { l.cleanups = append(l.cleanups, f) }
func (l *lasting) Helper()          {}
func (l *lasting) end() {
	for i := len(l.cleanups) - 1; i >= 0; i-- {
		l.cleanups[i]()
	}
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range atExit {
		f()
	}
	os.Exit(code)
}

func pool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// store returns a store that is set up, in quarantine as every new one.
func store(t testing.TB, p *pgxpool.Pool, options ...pgstore.Option) *pgstore.Store {
	t.Helper()
	s, err := pgstore.New("a", p, options...)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// fresh returns a store in a schema of its own on the shared server, declared new.
func fresh(t testing.TB) (s *pgstore.Store, schema string, p *pgxpool.Pool) {
	t.Helper()
	schema, p = newSchema(), pool(t, shared(t).URL())
	s = store(t, p, pgstore.Schema(schema))
	declareNew(t, s)
	return s, schema, p
}

// ask is a request of the set that all these tests are.
func ask(key string, o quorum.Owner) quorum.Request {
	return quorum.Request{
		Key: key, Owner: o, TTL: maxTTL, MaxTTL: maxTTL, Limit: 10 * time.Second, Set: 0xfeed_dead_beef_cafe,
		Label: "tester",
	}
}

// brief is ask with a vote and a quarantine that end soon.
func brief(key string, o quorum.Owner) quorum.Request {
	r := ask(key, o)
	r.TTL, r.MaxTTL = briefMaxTTL, briefMaxTTL
	return r
}

// What all stores' tests share.
var (
	owner       = acceptance.Owner
	mustAcquire = acceptance.MustAcquire
	mustRelease = acceptance.MustRelease
	wantOutcome = acceptance.WantOutcome
	await       = acceptance.Await
)

// declareNew ends the quarantine that every server begins with.
func declareNew(t testing.TB, s *pgstore.Store) {
	t.Helper()
	acceptance.DeclareNew(t, s, ask("", quorum.Owner{}))
}

// run runs a statement that is none of the store's.
func run(t testing.TB, p *pgxpool.Pool, text string, args ...any) {
	t.Helper()
	if _, err := p.Exec(t.Context(), text, append([]any{pgx.QueryExecModeExec}, args...)...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// one reads one value.
func one[T any](t testing.TB, p *pgxpool.Pool, text string, args ...any) (value T) {
	t.Helper()
	if err := p.QueryRow(t.Context(), text, append([]any{pgx.QueryExecModeExec}, args...)...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

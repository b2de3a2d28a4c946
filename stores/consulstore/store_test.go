package consulstore_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
)

func TestEveryVerb(t *testing.T) {
	node := testserver.Consul(t)
	s := store(t, client(t, node.Addr))
	a, b := ask("k", owner()), ask("k", owner())
	_, err := s.Acquire(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	declareNew(t, s)

	first := mustAcquire(t, s, a)
	if first.Token <= 0 || first.Previous != quorum.PreviousUnknown || first.TTL != a.TTL || !strings.HasPrefix(first.Server, "consul/") {
		t.Errorf("first grant: %+v", first)
	}
	_, err = s.Acquire(t.Context(), b)
	refused := (*quorum.RefusedError)(nil)
	if !errors.Is(err, quorum.ErrHeld) || !errors.As(err, &refused) {
		t.Fatalf("a second owner: %v", err)
	}
	if refused.Label != "tester" || refused.Left <= 0 || refused.Left > 2*a.TTL || !refused.Clean || refused.Counter != first.Token {
		t.Errorf("refusal: %+v", refused)
	}
	a.Floor = first.Token + 10
	if g := mustExtend(t, s, a); g.Token != first.Token+10 {
		t.Fatalf("extend: %+v", g)
	}
	state, err := s.Inspect(t.Context(), a)
	if err != nil || len(state.Holders) != 1 || state.Holders[0].Owner != a.Owner.Digest() || state.Holders[0].Label != "tester" {
		t.Fatalf("R61: inspect: %+v %v", state, err)
	}
	mustRelease(t, s, a)
	wantOutcome(t, s.Release(t.Context(), a), quorum.OutcomeNotHeld)
	next := mustAcquire(t, s, b)
	if next.Token != first.Token+11 || next.Previous != quorum.PreviousReleased {
		t.Errorf("next grant: %+v, want token %d after a release", next, first.Token+11)
	}
	force := ask("k", owner())
	force.Kind, force.Label = quorum.KindForce, "operator"
	taken := mustAcquire(t, s, force)
	if taken.Token != next.Token+1 || taken.Previous != quorum.PreviousUnknown {
		t.Errorf("forced grant: %+v", taken)
	}
	_, err = s.Extend(t.Context(), b)
	if !errors.As(err, &refused) || refused.Outcome != quorum.OutcomeNotHeld || !refused.Forced || refused.Label != "operator" {
		t.Errorf("extend after a take-over: %v", err)
	}
	mustRelease(t, s, force)
	if n := s.Holds(); n != 0 {
		t.Errorf("%d votes are remembered after all were released", n)
	}
}

// TestRoundTrips counts the requests that a verb waits for one after another,
// and all that it makes.
func TestRoundTrips(t *testing.T) {
	node := testserver.Consul(t)
	c, requests := countedClient(t, node.Addr)
	s := store(t, c)
	s.SetWall(func() time.Time { return time.Unix(1_764_000_060, 0) }) // a move of the step costs a transaction
	declareNew(t, s)
	cost := func(what string, want int64, f func()) {
		t.Helper()
		before := requests.n.Load()
		f()
		if got := requests.n.Load() - before; got != want {
			t.Errorf("%s takes %d requests, want %d", what, got, want)
		}
	}
	for _, again := range []string{"the first", "a later"} {
		a := ask("k", owner())
		var g quorum.Grant
		// A session beside the read, then the transaction: two in turn.
		cost(again+" Acquire", 3, func() { g = mustAcquire(t, s, a) })
		// The session is renewed beside the read: one.
		cost(again+" Extend", 2, func() { mustExtend(t, s, a) })
		a.Floor = g.Token + 1
		cost(again+" Extend that raises", 3, func() { mustExtend(t, s, a) })
		cost(again+" refusal", 2, func() {
			_, err := s.Acquire(t.Context(), ask("k", owner()))
			wantOutcome(t, err, quorum.OutcomeContended)
		})
		cost(again+" Release", 1, func() { mustRelease(t, s, a) })
	}
	if n := s.Spares(); n != 2 {
		t.Errorf("%d sessions are kept for the next votes, want the 2 that were needed at one time", n)
	}
}

func TestOneClusterUnderTwoNamesIsSeen(t *testing.T) {
	node := testserver.Consul(t)
	a, err := consulstore.New("a", client(t, node.Addr), consulstore.Prefix("one"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := consulstore.New("b", client(t, node.Addr), consulstore.Prefix("two"))
	if err != nil {
		t.Fatal(err)
	}
	set, err := quorum.Combine(quorum.Consensus(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "same server") {
		t.Errorf("R42: Check = %v, want an error that names the two", err)
	}
}

// TestF184ShortTTLsAreRefused is about the shortest session that Consul takes.
func TestF184ShortTTLsAreRefused(t *testing.T) {
	s, err := consulstore.New("a", client(t, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Limits().MinTTL; got != 10*time.Second {
		t.Errorf("the shortest TTL is %v, want 10s", got)
	}
	for _, ttl := range []time.Duration{5 * time.Second, 7500 * time.Millisecond} {
		if _, err := quorum.New(s, quorum.TTL(ttl)); err == nil || !strings.Contains(err.Error(), "10s") {
			t.Errorf("New with a TTL of %v = %v, want an error that names 10s", ttl, err)
		}
	}
	if _, err := quorum.New(s, quorum.TTL(15*time.Second)); err != nil {
		t.Errorf("New with a TTL of 15s = %v", err)
	}
	r := ask("k", owner())
	r.MaxTTL = consulstore.SessionMax + 1
	if _, err := s.Acquire(t.Context(), r); !errors.Is(err, quorum.ErrInvalidTTL) {
		t.Errorf("a MaxTTL above 24h: %v", err)
	}
}

// TestF184ServerWithTheDefaultMinimum asks a server whose session_ttl_min is the
// default for less: it says so, and nothing is left.
func TestF184ServerWithTheDefaultMinimum(t *testing.T) {
	node := testserver.Consul(t, testserver.ConsulConfig("session_ttl_min", "10s"))
	_, err := store(t, client(t, node.Addr)).ReadStep(t.Context(), ask("", quorum.Owner{}))
	if !errors.Is(err, quorum.ErrInvalidTTL) || !strings.Contains(err.Error(), "session_ttl_min") {
		t.Errorf("a session of 2 s: %v", err)
	}
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	s, err := consulstore.New("a", client(t, node.Addr))
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(s, quorum.TTL(10*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := l.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if left := lease.Remaining(); left > 10*time.Second {
		t.Errorf("the lease believes in %v, more than its TTL", left)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestF185LockDelayHoldsNobodyUp ends a session by hand: the name is free at
// once, where the default of Consul's own lock is 15 s.
func TestF185LockDelayHoldsNobodyUp(t *testing.T) {
	s, node := fresh(t)
	mustAcquire(t, s, ask("k", owner()))
	c := client(t, node.Addr)
	for _, session := range sessionsOf(t, c, "k") {
		entry, _, err := c.Session().Info(session, nil)
		if err != nil || entry.LockDelay != consulstore.LockDelay || entry.Behavior != api.SessionBehaviorDelete ||
			len(entry.NodeChecks)+len(entry.ServiceChecks) != 0 {
			t.Errorf("the vote's session: %+v %v", entry, err)
		}
		if _, err := c.Session().Destroy(session, nil); err != nil {
			t.Fatal(err)
		}
	}
	mustAcquire(t, s, ask("k", owner())) // the first request after it
}

// sessionsOf returns the sessions of a name's votes.
func sessionsOf(t *testing.T, c *api.Client, name string) (ids []string) {
	t.Helper()
	pairs, _, err := c.KV().List("quorum/"+consulstore.NameFolder(name)+"vote/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pairs {
		ids = append(ids, p.Session)
	}
	return ids
}

func TestNumbersAreTheProtocols(t *testing.T) {
	if consulstore.StepPeriod != core.StepPeriod || consulstore.StepMost != 1<<14 {
		t.Errorf("a step of %v moved by %d at most", consulstore.StepPeriod, consulstore.StepMost)
	}
}

func TestDeletingByHandFreesTheNameAndKeepsItsToken(t *testing.T) {
	s, node := fresh(t)
	a := ask("k", owner())
	token := mustAcquire(t, s, a).Token
	if _, err := client(t, node.Addr).KV().DeleteTree("quorum/"+consulstore.NameFolder("k")+"vote/", nil); err != nil {
		t.Fatal(err)
	}
	_, err := s.Extend(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeNotHeld)
	if g := mustAcquire(t, s, ask("k", owner())); g.Token != token+1 {
		t.Errorf("token %d after %d", g.Token, token)
	}
}

// TestVoteMovesToALongerSession: an Extend for longer than the session lasts.
func TestVoteMovesToALongerSession(t *testing.T) {
	s, node := fresh(t)
	other := store(t, client(t, node.Addr))
	a := ending("k", owner())
	token := mustAcquire(t, s, a).Token
	before := sessionsOf(t, client(t, node.Addr), "k")
	a.TTL, a.Floor = maxTTL, token
	for _, by := range []*consulstore.Store{s, other} { // the other knows no session of it
		if g := mustExtend(t, by, a); g.Token != token || g.TTL != maxTTL {
			t.Errorf("extend to %v: %+v", maxTTL, g)
		}
	}
	after := sessionsOf(t, client(t, node.Addr), "k")
	if len(after) != 1 || after[0] == before[0] {
		t.Errorf("sessions %v, then %v: want another one", before, after)
	}
	a.TTL = minTTL
	again := mustAcquire(t, s, a) // a doubled request of the same attempt, for less
	if again.Token != token {
		t.Errorf("the same attempt got token %d, want %d", again.Token, token)
	}
	entry, _, err := client(t, node.Addr).Session().Info(sessionsOf(t, client(t, node.Addr), "k")[0], nil)
	if err != nil || entry.TTL != maxTTL.String() {
		t.Errorf("the vote's session lasts %v (%v), want %v: a vote is never shortened", entry.TTL, err, maxTTL)
	}
	mustRelease(t, other, a)
}

// strict fails a test whose reads could be answered from the past.
type strict struct {
	http.Transport
	t *testing.T
}

func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	reads := r.URL.Path == "/v1/txn" || strings.HasPrefix(r.URL.Path, "/v1/kv/") && r.Method == http.MethodGet
	if _, ok := r.URL.Query()["consistent"]; reads && !ok {
		s.t.Errorf("%s %s is not consistent", r.Method, r.URL.Path)
	}
	return s.Transport.RoundTrip(r)
}

func TestF190NoDecisionDependsOnAStaleRead(t *testing.T) {
	node := testserver.Consul(t)
	transport := &strict{t: t}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := api.NewClient(&api.Config{Address: node.Addr, HttpClient: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	s := store(t, c)
	declareNew(t, s)
	a := ask("k", owner())
	mustAcquire(t, s, a)
	mustExtend(t, s, a)
	if _, err := s.Inspect(t.Context(), a); err != nil {
		t.Error(err)
	}
	mustRelease(t, s, a)
	if _, err := s.Clean(t.Context()); err != nil {
		t.Error(err)
	}
}

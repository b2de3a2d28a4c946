package etcdstore_test

import (
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

// What each verb sends. A lease or a renewal goes out beside what stands next to
// it: "KeepAlive+txn" is one round trip, "read txn" is two.
func TestRoundTrips(t *testing.T) {
	node := testserver.Etcd(t)
	w, c := wired(t, node)
	s, other := store(t, c), store(t, client(t, node))
	for _, s := range []*etcdstore.Store{s, other} {
		etcdstore.SetClock(s, new(hands).now) // no step moves, which would cost a round trip more
	}
	declareNew(t, s)
	longer := func(r quorum.Request) quorum.Request { r.TTL = maxTTL; return r }
	a, b := ask("k", owner()), ask("k", owner())
	a.TTL, b.TTL = maxTTL/2, maxTTL/2
	w.take()
	want := func(what, sent string) {
		t.Helper()
		if got := w.take(); got != sent {
			t.Errorf("%s sent %q, want %q", what, got, sent)
		}
	}
	g := mustAcquire(t, s, a)
	want("the first acquire, with a lease beside its read", "LeaseGrant LeaseKeepAlive read txn")
	mustExtend(t, s, a)
	want("extend", "LeaseKeepAlive txn")
	a.Floor = g.Token + 10
	mustExtend(t, s, a)
	want("extend with a floor above", "LeaseKeepAlive txn")
	_, err := s.Acquire(t.Context(), b)
	wantOutcome(t, err, quorum.OutcomeContended)
	want("the first refused acquire, with a lease to spare", "LeaseGrant read")
	_, err = s.Acquire(t.Context(), b)
	wantOutcome(t, err, quorum.OutcomeContended)
	want("a refused acquire", "read")
	mustRelease(t, s, a)
	want("release", "txn")
	mustAcquire(t, s, b)
	want("acquire", "LeaseKeepAlive read txn")
	mustExtend(t, s, longer(b))
	want("extend for longer than ever", "LeaseGrant LeaseKeepAlive txn")
	mustExtend(t, other, longer(b))
	mustExtend(t, s, longer(b))
	want("extend after another process has", "LeaseKeepAlive txn")
	mustRelease(t, other, b)
	wantOutcome(t, s.Release(t.Context(), b), quorum.OutcomeNotHeld)
	want("release of what another process released", "txn")
	wantOutcome(t, s.Release(t.Context(), b), quorum.OutcomeNotHeld)
	want("release of nothing", "read")
	b.Entomb = true
	wantOutcome(t, s.Release(t.Context(), b), quorum.OutcomeNotHeld)
	want("release that entombs", "LeaseGrant read txn")
}

package etcdstore_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

// waits asks for a place in the line.
func waits(o quorum.Owner, ticket int64) quorum.Request {
	r := ask("k", o)
	r.Wait, r.Ticket, r.Keep, r.Claim = quorum.WaitTake, ticket, time.Minute, maxTTL
	return r
}

const queueKey = "quorum/name/k/queue"

// TestAWaiterThatJoinsBeforeAReleaseIsToldItsTurn: what the release had read
// showed nobody. Without its compare the waiter would sleep on.
func TestAWaiterThatJoinsBeforeAReleaseIsToldItsTurn(t *testing.T) {
	node, c, s := fresh(t)
	w, slow := wired(t, node)
	late := store(t, slow)
	for _, mutant := range []bool{false, true} {
		holder, waiter := waits(owner(), 1), waits(owner(), 2)
		mustAcquire(t, late, holder)
		w.once(func(txn *etcdserverpb.TxnRequest) {
			_, err := s.Acquire(t.Context(), waiter)
			wantOutcome(t, err, quorum.OutcomeContended)
			if mutant {
				without(txn, queueKey)
			}
		})
		mustRelease(t, late, holder)
		reply, err := c.Get(t.Context(), queueKey)
		if err != nil || len(reply.Kvs) != 1 {
			t.Fatalf("the queue: %v, %v", reply, err)
		}
		if told := !strings.HasSuffix(string(reply.Kvs[0].Value), " -"); told == mutant {
			t.Errorf("mutant %v: the waiter's turn came: %v; the queue %q", mutant, told, reply.Kvs[0].Value)
		}
		mustAcquire(t, s, waiter)
		mustRelease(t, s, waiter)
	}
}

// TestAQueueNeedsNoClock: clocks that differ by hours neither take a turn from
// anybody nor change the order of asking.
func TestAQueueNeedsNoClock(t *testing.T) {
	_, c, s := fresh(t)
	early, late := store(t, c), store(t, c)
	etcdstore.SetClock(early, func() time.Time { return time.Now().Add(-3 * time.Hour) })
	etcdstore.SetClock(late, func() time.Time { return time.Now().Add(3 * time.Hour) })
	holder := waits(owner(), 0)
	mustAcquire(t, s, holder)
	var line []quorum.Request
	last := int64(0)
	for i, from := range []*etcdstore.Store{late, s, early} {
		r := waits(owner(), 0)
		_, err := from.Acquire(t.Context(), r)
		var refused *quorum.RefusedError
		if !errors.As(err, &refused) || refused.Rank != i || refused.Ticket <= last {
			t.Fatalf("waiter %d: %+v, want rank %d and a ticket above %d", i, refused, i, last)
		}
		r.Ticket = refused.Ticket
		last, line = refused.Ticket, append(line, r)
	}
	mustRelease(t, s, holder)
	_, err := late.Acquire(t.Context(), line[2]) // hours ahead, and no turn is over for it
	wantOutcome(t, err, quorum.OutcomeContended)
	for i, from := range []*etcdstore.Store{late, s, early} {
		mustAcquire(t, from, line[i])
		mustRelease(t, from, line[i])
	}
	if reply, err := c.Get(t.Context(), queueKey); err != nil || reply.Count != 0 {
		t.Errorf("a queue of nobody stays: %v, %v", reply, err)
	}
}

// TestADeadWaiterIsNoticedBesideAHolder: a holder that renews by what it
// remembers, from before anybody stood in line, makes its process forget nothing
// of who stands there now.
func TestADeadWaiterIsNoticedBesideAHolder(t *testing.T) {
	_, c, s := fresh(t)
	now := time.Now()
	etcdstore.SetClock(s, func() time.Time { return now })
	holder, dead, alive := ask("k", owner()), waits(owner(), 1), waits(owner(), 2)
	holder.Floor = mustAcquire(t, s, holder).Token
	rank := func(from *etcdstore.Store, r quorum.Request) int {
		t.Helper()
		_, err := from.Acquire(t.Context(), r)
		var refused *quorum.RefusedError
		if !errors.As(err, &refused) {
			t.Fatalf("%v, want a refusal", err)
		}
		return refused.Rank
	}
	rank(store(t, c), dead)
	if n := rank(s, alive); n != 1 {
		t.Errorf("rank %d behind another, want 1", n)
	}
	now = now.Add(dead.Keep - time.Second)
	mustExtend(t, s, holder)
	now = now.Add(2 * time.Second)
	if n := rank(s, alive); n != 0 {
		t.Errorf("rank %d after the time of the one before, want 0", n)
	}
	mustRelease(t, s, holder)
}

// TestRoundTripsInLine: what a hand-over sends.
func TestRoundTripsInLine(t *testing.T) {
	node := testserver.Etcd(t)
	w, c := wired(t, node)
	s, other := store(t, c), store(t, client(t, node))
	for _, s := range []*etcdstore.Store{s, other} {
		etcdstore.SetClock(s, new(hands).now)
	}
	declareNew(t, s)
	want := func(what, sent string) {
		t.Helper()
		if got := w.take(); got != sent {
			t.Errorf("%s sent %q, want %q", what, got, sent)
		}
	}
	a, b, d := waits(owner(), 1), waits(owner(), 2), waits(owner(), 3)
	mustAcquire(t, s, a)
	for _, r := range []quorum.Request{b, d} {
		_, err := other.Acquire(t.Context(), r)
		wantOutcome(t, err, quorum.OutcomeContended)
	}
	w.take()
	mustRelease(t, s, a)
	want("a release after others fell in, with a lease for queues, once a minute", "LeaseGrant txn txn")
	a = waits(owner(), 4)
	_, err := s.Acquire(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeContended)
	want("to fall in", "read txn")
	a.Wait = quorum.WaitQueue
	_, err = s.Acquire(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeContended)
	want("a look at the line", "read txn")
	mustAcquire(t, other, b)
	mustRelease(t, other, b)
	mustAcquire(t, other, d)
	mustRelease(t, other, d)
	a.Wait = quorum.WaitTake
	mustAcquire(t, s, a)
	want("a take", "LeaseKeepAlive read txn")
	mustRelease(t, s, a)
	want("a release of a name that nobody waits for", "txn")
}

package kubestore_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
)

// TestR14VoteEndsByTheClockThatWatchedIt: clocks that only the test moves, and
// that differ by years.
func TestR14VoteEndsByTheClockThatWatchedIt(t *testing.T) {
	node := testserver.Leases(t)
	kubeconfig := node.Kubeconfig(node.Admin)
	holder, watcher, newcomer := open(t, kubeconfig), open(t, kubeconfig), open(t, kubeconfig)
	ofHolder, ofWatcher, ofNewcomer := newTimes(holder), newTimes(watcher), newTimes(newcomer)
	ofHolder.Advance(20 * 365 * 24 * time.Hour)
	ofNewcomer.wall = ofNewcomer.wall.Add(-365 * 24 * time.Hour)
	ofWatcher.wall = ofWatcher.wall.Add(30 * 24 * time.Hour)
	declareNew(t, holder)
	left := func(s quorum.Store, want time.Duration) {
		t.Helper()
		if got := contended(t, s, ask("k", owner())).Left; got != want {
			t.Errorf("%v left, want %v", got, want)
		}
	}

	pass := func(d time.Duration) {
		for _, x := range []*times{ofHolder, ofWatcher, ofNewcomer} {
			x.Advance(d)
		}
	}
	a := ask("k", owner())
	token := mustAcquire(t, holder, a).Token
	a.Floor = token
	left(watcher, maxTTL)
	pass(maxTTL - time.Millisecond)
	left(watcher, time.Millisecond)
	mustExtend(t, holder, a)
	pass(time.Millisecond)
	left(watcher, maxTTL) // another vote than the one that it knew for so long
	pass(maxTTL - time.Millisecond)
	mustExtend(t, newcomer, a) // in another process, which meets the vote for the first time
	pass(time.Millisecond)
	left(watcher, maxTTL)
	pass(maxTTL / 2)
	late := open(t, kubeconfig)
	ofLate := newTimes(late)
	left(late, maxTTL)
	pass(maxTTL / 2)
	ofLate.Advance(maxTTL / 2)
	left(late, maxTTL/2)

	g := mustAcquire(t, watcher, ask("k", owner()))
	if g.Token != token+1 || g.Previous != quorum.PreviousExpired {
		t.Errorf("taken over with token %d after %d, previous %v (R31), want one more and expired", g.Token, token, g.Previous)
	}
	_, err := holder.Extend(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeNotHeld)
	ofLate.Advance(maxTTL / 2)
	left(late, maxTTL) // of the new holder's
}

// TestQuarantineEndsByTheClockThatWatchedIt: the end of it that one client knows
// is no other's.
func TestQuarantineEndsByTheClockThatWatchedIt(t *testing.T) {
	node := testserver.Leases(t)
	kubeconfig := node.Kubeconfig(node.Admin)
	first, second := open(t, kubeconfig), open(t, kubeconfig)
	ofFirst := newTimes(first)
	newTimes(second)
	step := func(s quorum.HighWater) quorum.Step {
		t.Helper()
		step, err := s.ReadStep(t.Context(), ask("", quorum.Owner{}))
		if err != nil {
			t.Fatal(err)
		}
		return step
	}
	begun := step(first)
	if begun.Quarantine == "" || begun.Over || begun.Left != maxTTL {
		t.Fatalf("the first client sees %+v", begun)
	}
	ofFirst.Advance(maxTTL)
	if s := step(second); s.Quarantine != begun.Quarantine || s.Over || s.Left != maxTTL {
		t.Errorf("the second client, which looks for the first time, sees %+v", s)
	}
	if s := step(first); s.Quarantine != begun.Quarantine || !s.Over {
		t.Errorf("the first client, %v later, sees %+v", maxTTL, s)
	}
	alone := quorum.Raise{Quarantine: begun.Quarantine, Alone: true}
	wantOutcome(t, second.Raise(t.Context(), ask("", quorum.Owner{}), alone), quorum.OutcomeQuarantined)
	if err := first.Raise(t.Context(), ask("", quorum.Owner{}), alone); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, second, ask("k", owner()))
}

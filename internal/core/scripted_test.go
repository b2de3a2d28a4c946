package core_test

import (
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Mutants that a search over frozen time cannot show, each by a script that
// ends well with the rule and badly without it.

func config(n int, bugs core.Bugs) core.Config {
	c := core.Config{
		Rule: core.Majority(n), Within: leaseTTL, CallLimit: limit, ReleaseLimit: 5 * time.Second, DriftPPM: 10_000, DriftFixed: 2 * time.Millisecond,
		Request: core.Request{Key: key, TTL: leaseTTL, MaxTTL: time.Minute, Set: 1, Owner: core.Owner{ID: core.ID{1}}}, Bugs: bugs,
	}
	c.Ask = inOrder(n)
	return c
}

// inOrder is the order of n stores by number.
func inOrder(n int) core.Ranking {
	var order []int
	for i := range n {
		order = append(order, i)
	}
	return core.RankingOf(order...)
}

// won returns a lease of three stores that was asked for at start and granted
// by two of them at end.
func won(t *testing.T, bugs core.Bugs, start, end clock.Instant) *core.Lease {
	t.Helper()
	l := core.NewLease(core.LeaseConfig{Config: config(3, bugs), Wait: -1, RenewEvery: 3 * time.Second, Seed: 1})
	l.Start(start)
	for range 2 {
		for _, c := range l.Calls() {
			l.Answer(end, c.Store, c.Seq, core.Answer{Outcome: core.Granted, Token: 7})
		}
	}
	if l.Stage() != core.Holding {
		t.Fatalf("stage %v after two grants, want holding", l.Stage())
	}
	return l
}

// outlives reports whether a holder that dies at once still believes when the
// first store frees the name. The stores' clocks run 1 % fast.
func outlives(t *testing.T, bugs core.Bugs) bool {
	const sent, answered = clock.Instant(0), clock.Instant(500 * time.Millisecond)
	l := won(t, bugs, sent, answered)
	freed := sent.Add(leaseTTL * 100 / 101)
	return l.Until() > freed
}

func TestMutantValidityFromReply(t *testing.T) { shows(t, core.BugValidityFromReply, outlives) }
func TestMutantNoDrift(t *testing.T)           { shows(t, core.BugNoDrift, outlives) }

func TestMutantLostLeaseRevived(t *testing.T) {
	shows(t, core.BugReviveLost, func(t *testing.T, bugs core.Bugs) bool {
		l := won(t, bugs, 0, 0)
		l.Calls()
		l.Wake(clock.Instant(3 * time.Second)) // a round of renewal leaves
		calls := l.Calls()
		late := clock.Instant(leaseTTL) // and is answered when the lease has ended
		for _, c := range calls {
			l.Answer(late, c.Store, c.Seq, core.Answer{Outcome: core.Granted, Token: 7})
		}
		return l.Until() > late
	})
}

// The steps are read after the quarantine's time is over. Store a grants T and
// forgets; b and c are read; then b confirms T; the quorum of a and c must not
// start below T.
func TestMutantStepsReadBeforeQuarantineEnds(t *testing.T) {
	shows(t, core.BugEarlyStepRead, func(t *testing.T, bugs core.Bugs) bool {
		w := newThree()
		// The counter of a has outgrown its step, which the clock cannot tell.
		w.stores[0].Apply(core.Request{Verb: core.Acquire, Key: key, Floor: 5 << core.StepBits, TTL: time.Millisecond, MaxTTL: time.Minute, Set: 1, Owner: core.Owner{ID: core.ID{9}, Attempt: 1}}, 0)
		w.now = clock.Instant(time.Second)

		first := config(3, 0)
		first.Request.Order = core.AllAtOnce
		holder := core.NewQuorum(first)
		holder.Begin(w.now)
		w.carry(holder, 0, 1) // c stays silent; what b granted lags, so a write-back leaves for it
		writeBack := holder.Calls()

		w.stores[0].Forget("run 2")
		f := core.NewRefill(core.RefillConfig{Rule: core.Majority(3), Store: 0, Request: first.Request, CallLimit: limit, Bugs: bugs})
		f.Start(w.now)
		raise := w.refill(f)

		w.deliver(holder, writeBack...)
		if holder.Phase() != core.Held {
			t.Fatalf("phase %v, want the token confirmed by b", holder.Phase())
		}
		// The quarantine's time passes. A raise that left before arrives only now.
		w.now = w.now.Add(time.Minute)
		if f.Stage() == core.RefillResting {
			f.Wake(w.now)
			raise = w.refill(f)
		}
		w.deliver(f, raise...)
		if f.Stage() != core.RefillDone {
			t.Fatalf("stage %v, want store a raised", f.Stage())
		}
		second := config(3, 0)
		second.Request.Owner.ID = core.ID{2}
		next := core.NewQuorum(second)
		next.Begin(w.now)
		w.carry(next, 0, 2)
		if next.Phase() != core.Held {
			t.Fatalf("phase %v, want a and c to make a quorum", next.Phase())
		}
		return next.Token() <= holder.Token()
	})
}

// three is three stores, their clocks and those of all clients in step.
type three struct {
	stores [3]*model.Store
	now    clock.Instant
}

func newThree() *three {
	w := &three{}
	for i := range w.stores {
		w.stores[i] = model.NewStore("m", "s", "run 1", 0)
	}
	return w
}

type answered interface {
	Calls() []core.Call
	Answer(clock.Instant, int, uint32, core.Answer)
}

func (w *three) deliver(m answered, calls ...core.Call) {
	for _, c := range calls {
		m.Answer(w.now, c.Store, c.Seq, w.stores[c.Store].Apply(c.Req, model.Time(w.now)/1000))
	}
}

// carry brings the calls of an attempt, and what follows them, to the stores
// named, and loses the others. It stops before a write-back.
func (w *three) carry(q *core.Quorum, stores ...int) {
	for q.Phase() == core.Asking {
		calls := q.Calls()
		if len(calls) == 0 {
			return
		}
		for _, c := range calls {
			if slices.Contains(stores, c.Store) {
				w.deliver(q, c)
			} else {
				q.Answer(w.now, c.Store, c.Seq, core.Answer{Outcome: core.Unknown})
			}
		}
		if q.Phase() == core.Asking && q.Votes().Len() >= 2 {
			return
		}
	}
}

// refill brings the calls of a Refill to the stores, but for a raise, which it
// returns.
func (w *three) refill(f *core.Refill) []core.Call {
	for {
		calls := f.Calls()
		if len(calls) == 0 || calls[0].Req.Verb == core.Raise {
			return calls
		}
		w.deliver(f, calls...)
	}
}

// shows fails unless bad is true with the bug and false without it.
func shows(t *testing.T, bug core.Bugs, bad func(*testing.T, core.Bugs) bool) {
	t.Helper()
	if bad(t, 0) {
		t.Error("broken with every rule in place")
	}
	if !bad(t, bug) {
		t.Error("the mutant is not seen")
	}
}

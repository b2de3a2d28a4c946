package core_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// A waiter may be admitted before its own goroutine comes to park it: it is the
// first in line by then, and nobody would admit it again.
func TestR12AdmittedBeforeItParked(t *testing.T) {
	l := core.NewLease(core.LeaseConfig{Config: config(1, 0), Wait: -1, BackoffMin: 10 * time.Millisecond, BackoffMax: time.Second})
	l.Admit(0)
	call := l.Calls()[0]
	l.Answer(0, 0, call.Seq, core.Answer{Outcome: core.Contended, Clean: true})
	if l.Stage() != core.Waiting {
		t.Fatalf("denied, the lease is %v", l.Stage())
	}
	l.StartParked(0)
	if next := l.Next(); next > at(time.Second) {
		t.Errorf("the lease asks again at %v", time.Duration(next))
	}
	parked := core.NewLease(core.LeaseConfig{Config: config(1, 0), Wait: -1, BackoffMin: 10 * time.Millisecond, BackoffMax: time.Second})
	parked.StartParked(0)
	if parked.Wake(at(time.Second)); len(parked.Calls()) != 0 {
		t.Error("parked, it asks")
	}
	if parked.Admit(at(time.Second)); len(parked.Calls()) != 1 {
		t.Error("admitted, it does not ask")
	}
}

// A wait that ends while answers are due is told the same in each order: some
// store said held, and those that are due count as those that were not asked.
func TestHeldAtTheEndOfTheWait(t *testing.T) {
	for _, order := range []core.Order{core.InOrder, core.FirstThenRest} {
		cfg := core.LeaseConfig{Config: config(5, 0), Wait: 100 * time.Millisecond}
		cfg.Request.Order = order
		l := core.NewLease(cfg)
		l.Start(0)
		for range 2 {
			for _, c := range l.Calls() {
				switch c.Store {
				case 0:
					l.Answer(0, 0, c.Seq, core.Answer{Outcome: core.Granted, Token: 5})
				case 1:
					l.Answer(0, 1, c.Seq, core.Answer{Outcome: core.Contended, Clean: true})
				}
			}
		}
		l.Wake(at(100 * time.Millisecond))
		l.Wake(at(time.Second))
		var told []core.Failure
		for _, n := range l.Notices() {
			if n.Kind == core.NoticeFailed {
				told = append(told, n.Failure)
			}
		}
		if len(told) != 1 || told[0] != core.ByHeld {
			t.Errorf("asked %v, the wait ends by %v, want held", order, told)
		}
	}
}

// A turn may be told, by another connection, before the answer to the request
// that fell in line: it must not wait until the holder's vote would run out.
func TestR12TurnBeforeTheAnswer(t *testing.T) {
	cfg := core.LeaseConfig{Config: config(1, 0), Wait: -1, BackoffMin: 10 * time.Millisecond, BackoffMax: time.Second}
	cfg.Queues = true
	l := core.NewLease(cfg)
	l.Start(0)
	take := l.Calls()[0]
	l.Woken(0, 0, core.Wake{Kind: core.WakeStarted})
	l.Woken(at(time.Millisecond), 0, core.Wake{Kind: core.WakeTurn, Counter: 7})
	l.Answer(at(2*time.Millisecond), 0, take.Seq, core.Answer{Outcome: core.Contended, Ticket: 5, Left: 30 * time.Second})
	for wait := 0; wait < 20; wait++ {
		if calls := l.Calls(); len(calls) > 0 && calls[0].Req.Verb == core.Acquire && calls[0].Req.Wait == core.WaitTake {
			return
		}
		l.Wake(l.Next())
		if l.Next() > at(time.Second) {
			break
		}
	}
	t.Errorf("told its turn, the lease asks again at %v", time.Duration(l.Next()))
}

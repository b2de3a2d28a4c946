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

package model_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

func TestStepMoves(t *testing.T) {
	cases(t, map[string]func(*node){
		"each period, with the clock": func(n *node) {
			n.pass(core.StepPeriod - time.Microsecond)
			n.granted(acquire(1, 1), 1)
			n.pass(time.Microsecond)
			n.granted(acquire(1, 2), 2) // a counter that is known goes on
			if s := n.store.Record.Step; s != step+1 {
				n.Errorf("step %d, want %d", s, step+1)
			}
			fresh := acquire(1, 1)
			fresh.Key = "fresh"
			n.granted(fresh, 1<<core.StepBits+1)
			n.pass(7 * core.StepPeriod)
			fresh.Key = "fresher"
			n.granted(fresh, 8<<core.StepBits+1)
		},
		"ahead of the clock it moves half as often, until the clock is even": func(n *node) {
			n.granted(acquire(1, 1, floor(3<<core.StepBits)), 3<<core.StepBits) // three ahead
			for _, want := range []int64{3, 4, 4, 5, 5, 6, 7, 8} {
				n.pass(core.StepPeriod)
				n.do(release(1, 1))
				if s := n.store.Record.Step; s != step+want {
					n.Errorf("step %d, want %d", s-step, want)
				}
			}
		},
		"when the clock goes back": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(-time.Microsecond)
			n.granted(acquire(1, 1), 1)
			if s := n.store.Record.Step; s != step+1 {
				n.Errorf("step %d, want %d", s, step+1)
			}
		},
		"when a counter outgrows it": func(n *node) {
			n.granted(acquire(1, 1, floor(5<<core.StepBits)), 5<<core.StepBits)
			if s := n.store.Record.Step; s != step+5 {
				n.Errorf("step %d, want %d", s, step+5)
			}
			n.granted(extend(1, 1, floor(6<<core.StepBits+3)), 6<<core.StepBits+3)
			if s := n.store.Record.Step; s != step+6 {
				n.Errorf("step %d, want %d", s, step+6)
			}
		},
		"a release moves it too": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.pass(core.StepPeriod)
			n.do(release(1, 1))
			if s := n.store.Record.Step; s != step+1 {
				n.Errorf("step %d, want %d", s, step+1)
			}
		},
	})
}

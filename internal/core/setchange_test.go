package core_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Operators are killed between any two messages, and others go on where they
// stopped; stores fall silent and forget; clients of every set take locks all
// the while. Never two holders, never a token that did not grow, and once the
// faults end one more run comes to the end.
func TestR48OperatorKilledBetweenAnyTwoSteps(t *testing.T) {
	for _, s := range shifts {
		t.Run(s.name, func(t *testing.T) {
			wins := map[uint64]int{}
			for seed := range uint64(150) {
				w := newChanging(seed, s, false)
				w.run(t, 1500, 0)
				if w.broken != "" {
					t.Fatalf("seed %d: %s", seed, w.broken)
				}
				w.settle(t, seed)
				if w.broken != "" {
					t.Fatalf("seed %d, at its end: %s", seed, w.broken)
				}
				for set, n := range w.wins {
					wins[set] += n
				}
			}
			for _, set := range []uint64{from, joint, to} {
				if wins[set] < 150 {
					t.Errorf("%d locks were taken by clients of %x, which shows little", wins[set], set)
				}
			}
		})
	}
}

// settle ends all faults and demands that a run of the change comes to its end
// and that a client of the new set then takes the lock.
func (w *changing) settle(t *testing.T, seed uint64) {
	t.Helper()
	w.down, w.ops = 0, nil
	w.begin(core.ChangeDone, 0)
	c := w.ops[0].c
	for i := 0; !c.Settled(); i++ {
		if i > 20_000 {
			t.Fatalf("seed %d: the change is stuck at stage %d", seed, c.Stage())
		}
		w.now = w.now.Add(50 * time.Millisecond)
		w.operate()
		for i := range w.n() { // somebody of either set carries stores out of quarantine
			w.refill(joint, i)
			w.refill(to, i)
		}
	}
	if c.Failed() || c.Stage() != core.ChangeDone {
		t.Fatalf("seed %d: the change ended at stage %d, failed %t", seed, c.Stage(), c.Failed())
	}
	w.now = w.now.Add(2 * changeTTL)
	for range 100 { // those that were lost on the way are served in the next run
		before := w.wins[to]
		w.take(to, "key 0")
		if w.wins[to] > before {
			return
		}
		w.now = w.now.Add(changeTTL)
		for i := range w.n() {
			w.refill(to, i)
		}
	}
	t.Fatalf("seed %d: nobody can take the lock under the new set", seed)
}

func TestR48MutantsOfAChangeAreSeen(t *testing.T) {
	for name, bug := range map[string]core.Bugs{"no wait": core.BugChangeNoWait, "no raise": core.BugChangeNoRaise} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(500) {
				w := newChanging(seed, shifts[1], true)
				w.run(t, 600, bug)
				if w.broken != "" {
					t.Logf("seed %d: %s", seed, w.broken)
					return
				}
			}
			t.Error("the mutant is not seen in 500 seeds")
		})
	}
}

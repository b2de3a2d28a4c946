package consulstore_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// TestManyTurnsEndInOneTransaction: a transaction of Consul's holds 64
// operations, and an older writer ends the turns of any number of readers.
func TestManyTurnsEndInOneTransaction(t *testing.T) {
	s, node := fresh(t)
	c := client(t, node.Addr)
	holder := waits(owner(), 1)
	floor := mustAcquire(t, s, holder).Token + 10
	for i := range 100 {
		reader := waits(owner(), int64(10+i))
		reader.Mode, reader.Wait = quorum.ModeShared, quorum.WaitQueue
		one := store(t, c)
		if i == 0 {
			rank(t, one, reader)
			mustRelease(t, s, holder)
		}
		_, err := one.Acquire(t.Context(), reader)
		wantOutcome(t, err, quorum.OutcomeReady)
	}
	writer := waits(owner(), 2)
	writer.Wait = quorum.WaitQueue
	_, err := s.Acquire(t.Context(), writer)
	wantOutcome(t, err, quorum.OutcomeReady)
	force, repair := ask("k", owner()), ask("k", owner())
	force.Kind = quorum.KindForce
	mustAcquire(t, s, force)
	repair.Kind, repair.Floor = quorum.KindRepair, floor
	_, err = s.Acquire(t.Context(), repair)
	wantOutcome(t, err, quorum.OutcomeContended)
}

// TestR24AHolderHearsBesideAWaiterOfItsProcess: that one stands far back, and its
// bell is not all that the process has to hear.
func TestR24AHolderHearsBesideAWaiterOfItsProcess(t *testing.T) {
	s, node := fresh(t)
	mine := store(t, client(t, node.Addr))
	holder, first, second := waits(owner(), 1), waits(owner(), 2), waits(owner(), 3)
	wakes := watch(t, mine, "k")
	mustAcquire(t, mine, holder)
	rank(t, s, first)
	rank(t, mine, second)
	told := func(d time.Duration) bool {
		end := time.After(d)
		for {
			select {
			case w := <-wakes:
				if w.Kind == quorum.WakeChanged {
					return true
				}
			case <-end:
				return false
			}
		}
	}
	told(2 * time.Second) // meanwhile the watch has seen its bell
	force := ask("k", owner())
	force.Kind = quorum.KindForce
	mustAcquire(t, s, force)
	if !told(4 * time.Second) { // it looks by itself after five
		t.Error("the holder was not told of the take-over")
	}
}

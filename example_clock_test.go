package quorum_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
)

// An hour of renewals passes in a moment: in a bubble time moves when every
// goroutine waits. The clock of the Locker and of the store must follow it.
func anHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var renewals atomic.Int64
		store := memstore.New("memory", memstore.WithClock(clock.Go()))
		locks, err := quorum.New(store, quorum.TTL(15*time.Second), quorum.WithClock(clock.Go()),
			quorum.Observe(func(e quorum.Event) {
				if e.Kind == quorum.EventRenewed {
					renewals.Add(1)
				}
			}))
		if err != nil {
			t.Fatal(err)
		}
		lease, err := locks.Acquire(t.Context(), "report")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := lease.Err(); err != nil {
			t.Errorf("after an hour: %v", err)
		}
		if err := locks.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if n := renewals.Load(); n < 700 {
			t.Errorf("%d renewals in an hour, want one every 5 s", n)
		}
	})
}

func ExampleWithClock() {
	var t *testing.T // of your own test
	_ = func() { anHour(t) }
}

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// outage has two of three stores refuse for a while.
func (b *bed) outage(lasts time.Duration) {
	for _, sp := range b.spoil[:2] {
		sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Fail(nil)))
	}
	time.AfterFunc(lasts, func() {
		for _, sp := range b.spoil {
			sp.Set()
		}
	})
}

// Whoever takes by force stands in no line, and so nobody would end its wait.
func TestR09ForceWaitsThroughAnOutage(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		b.outage(3 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		lease, err := b.locker().Force(ctx, "k")
		if err != nil || since(start) > 10*time.Second {
			t.Fatalf("after %v: %v", since(start), err)
		}
		_ = lease.Release(t.Context())
	})
}

func TestR34SlotsWaitThroughAnOutage(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		slots, err := l.Slots("s", 2)
		if err != nil {
			t.Fatal(err)
		}
		b.outage(3 * time.Second)
		if _, err := slots.Acquire(t.Context(), quorum.FailOnOutage()); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("told not to wait: %v", err)
		}
		slot, err := slots.Acquire(t.Context())
		if err != nil {
			t.Fatalf("through an outage: %v", err)
		}
		_ = slot.Release(t.Context())
	})
}

// A group whose first lock is lost while it waits for the second gives up.
func TestR07AcquireAllEndsWhenOneIsLost(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l, other := b.locker(), b.locker()
		held := must(t, other, "b")
		time.AfterFunc(time.Second, func() {
			if _, err := other.Force(context.Background(), "a"); err != nil {
				t.Error(err)
			}
		})
		start := time.Now()
		_, err := l.AcquireAll(t.Context(), []string{"a", "b"})
		if !errors.Is(err, quorum.ErrLost) || errors.Is(err, context.Canceled) || since(start) > 10*time.Second {
			t.Errorf("after %v: %v", since(start), err)
		}
		_ = held.Release(t.Context())
	})
}

// However many wait, a store that is well again gets its vote back soon: those
// who wait take no try away from who would make it.
func TestStoreThatIsBackIsTriedHoweverManyWait(t *testing.T) {
	for _, waiters := range []int{0, 1, 20} {
		t.Run(fmt.Sprint(waiters), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				theirs, mine := b.locker(), b.locker()
				for i := range waiters {
					must(t, theirs, fmt.Sprint("k", i))
				}
				b.spoil[2].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire, storetest.VerbExtend, storetest.VerbRelease), storetest.Fail(nil)))
				must(t, mine, "held")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				for i := range waiters {
					go func() { _, _ = mine.Acquire(ctx, fmt.Sprint("k", i)) }()
				}
				time.Sleep(2 * time.Minute)
				b.spoil[2].Set()
				time.Sleep(20 * time.Second) // the longest pause between tries, and a renewal
				if len(b.holders(2, "held")) == 0 {
					t.Error("the store that is back has no vote of the lease")
				}
				cancel()
			})
		})
	}
}

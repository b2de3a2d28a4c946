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

func TestR01TryAcquireIsOneAttemptInBoundedTime(t *testing.T) {
	t.Run("contention", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker()
			must(t, l, "k")
			b.settle()
			before := b.calls(storetest.VerbAcquire)
			lease, err := l.TryAcquire(t.Context(), "k")
			if lease != nil || !errors.Is(err, quorum.ErrHeld) {
				t.Fatalf("TryAcquire of a held key = %v, %v, want nil and ErrHeld", lease, err)
			}
			if asked := b.calls(storetest.VerbAcquire) - before; asked > 3 {
				t.Errorf("one attempt made %d calls to 3 stores", asked)
			}
		})
	})
	t.Run("three stores that hang", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(2 * time.Second))
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Hang()))
			}
			start := time.Now()
			_, err := l.TryAcquire(t.Context(), "k")
			within(t, "TryAcquire", since(start), 0, 3*500*time.Millisecond+50*time.Millisecond)
			if !errors.Is(err, quorum.ErrNoQuorum) || errors.Is(err, quorum.ErrHeld) {
				t.Errorf("three hanging stores gave %v, want ErrNoQuorum", err)
			}
		})
	})
	t.Run("three stores that ignore their context", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(2 * time.Second))
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Freeze()))
			}
			start := time.Now()
			_, err := l.TryAcquire(t.Context(), "k")
			within(t, "TryAcquire", since(start), 0, 3*500*time.Millisecond+50*time.Millisecond)
			if !errors.Is(err, quorum.ErrNoQuorum) {
				t.Errorf("three frozen stores gave %v, want ErrNoQuorum", err)
			}
			for _, sp := range b.spoil {
				sp.Thaw()
			}
			b.settle()
			b.checkEmpty("k")
		})
	})
}

func TestR02ContextBoundsTheWait(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(time.Second))
		must(t, l, "k")
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		_, err := l.Acquire(ctx, "k")
		within(t, "Acquire", since(start), 3*time.Second, 3050*time.Millisecond)
		if !errors.Is(err, quorum.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("an ended wait for a held key = %v, want ErrHeld and the context's error", err)
		}
	})
	t.Run("an ended context asks no store", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_, err := b.locker().Acquire(ctx, "k")
			if !errors.Is(err, context.Canceled) || b.calls(storetest.VerbAcquire) != 0 {
				t.Errorf("Acquire with an ended context = %v after %d calls, want Canceled after none", err, b.calls(storetest.VerbAcquire))
			}
		})
	})
}

func TestF070WaitIsNotLimitedByTTL(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(time.Second))
		first := must(t, l, "k")
		time.AfterFunc(3*time.Second, func() { _ = first.Release(context.Background()) })
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(ctx, "k"); err != nil {
			t.Fatalf("the waiter got %v", err)
		}
		within(t, "the wait", since(start), 3*time.Second, 4*time.Second)
	})
}

func TestF127WaitLimitIsKept(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		must(t, l, "k")
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Latency(50 * time.Millisecond)))
		}
		for range 20 {
			start := time.Now()
			_, err := l.Acquire(t.Context(), "k", quorum.Wait(500*time.Millisecond))
			within(t, "Acquire with Wait(500ms)", since(start), 500*time.Millisecond, 620*time.Millisecond)
			if !errors.Is(err, quorum.ErrHeld) || !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the end of Wait = %v, want ErrHeld and DeadlineExceeded", err)
			}
		}
	})
}

func TestF049UndoHasItsOwnTime(t *testing.T) {
	// R50: two stores grant, three hang, and the caller's context ends.
	inBubble(t, 5, func(t *testing.T, b *bed) {
		order := b.ask("k")
		l := b.locker(quorum.TTL(30*time.Second), quorum.AskOrder(quorum.AllAtOnce))
		for _, i := range order[2:] {
			b.spoil[i].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Hang()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := l.Acquire(ctx, "k")
		within(t, "Acquire", since(start), 50*time.Millisecond, 100*time.Millisecond)
		if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("got %v, want the context's error and ErrNoQuorum", err)
		}
		b.settle()
		b.checkEmpty("k")
		for i, sp := range b.spoil {
			for _, c := range sp.Log(storetest.Verbs(storetest.VerbRelease)) {
				if c.Request.Key == "k" && c.Context != nil {
					t.Errorf("a release of store %d came with an ended context: %v", i, c.Context)
				}
			}
		}
	})
}

func TestF052UndoGoesToTheStoreWhoseReplyWasLost(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		order := b.ask("k")
		b.rival("k", 30*time.Second, order[1], order[2])
		b.spoil[order[0]].Set(storetest.On(storetest.Nth(storetest.VerbAcquire, 1), storetest.DropReply(nil)))
		_, err := b.locker(quorum.TTL(30*time.Second)).TryAcquire(t.Context(), "k")
		if err == nil {
			t.Fatal("one vote of three was enough")
		}
		b.settle()
		if h := b.holders(order[0], "k"); len(h) != 0 {
			t.Errorf("the store that granted and could not say so still holds %+v", h)
		}
	})
}

func TestF053LateGrantIsUndone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.LateApply(200*time.Millisecond, nil)))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := b.locker(quorum.CallLimit(60*time.Millisecond)).Acquire(ctx, "k"); err == nil {
			t.Fatal("nobody answered, and it was acquired")
		}
		time.Sleep(time.Second)
		b.checkEmpty("k")
	})
}

func TestF055RetryIsNotBlockedByItsOwnLeftovers(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(10 * time.Second))
		for _, sp := range b.spoil {
			sp.Set(
				storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.DropReply(nil)),
				storetest.On(storetest.Verbs(storetest.VerbRelease), storetest.Fail(nil)),
			)
		}
		heal := time.AfterFunc(time.Second, func() {
			for _, sp := range b.spoil {
				sp.Set()
			}
		})
		defer heal.Stop()
		start := time.Now()
		lease, err := l.Acquire(t.Context(), "k", quorum.Wait(5*time.Second))
		if err != nil {
			t.Fatalf("after the network healed: %v", err)
		}
		within(t, "the acquisition", since(start), time.Second, 2*time.Second)
		time.Sleep(time.Second)
		if b.held("k") < 2 || lease.Err() != nil {
			t.Errorf("a second later %d stores hold the key, and the lease says %v", b.held("k"), lease.Err())
		}
	})
	t.Run("releases of attempt 1 that arrive late", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(10 * time.Second))
			for _, sp := range b.spoil {
				sp.Set(
					storetest.On(storetest.Nth(storetest.VerbAcquire, 1), storetest.DropReply(nil)),
					storetest.On(storetest.Nth(storetest.VerbRelease, 1), storetest.LateApply(300*time.Millisecond, errors.New("reset"))),
				)
			}
			lease := must(t, l, "k", quorum.Wait(5*time.Second))
			time.Sleep(time.Second)
			if b.held("k") < 2 || lease.Err() != nil {
				t.Errorf("late releases of the first attempt left %d votes of the second, and %v", b.held("k"), lease.Err())
			}
		})
	})
}

func TestR51SlowAcquisitionExpires(t *testing.T) {
	// F056: all stores grant, too late to be of use.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(2*time.Second), quorum.CallLimit(2*time.Second), quorum.AskOrder(quorum.AllAtOnce))
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.LateReply(1990*time.Millisecond)))
		}
		_, err := l.Acquire(t.Context(), "k")
		if !errors.Is(err, quorum.ErrExpired) {
			t.Fatalf("an acquisition of 1.99 s, with a TTL of 2 s and drift taken off, gave %v, want ErrExpired", err)
		}
		for _, sp := range b.spoil {
			sp.Set()
		}
		b.settle()
		b.checkEmpty("k")
		if _, err := l.TryAcquire(t.Context(), "k"); err != nil {
			t.Errorf("the next client got %v", err)
		}
	})
}

func TestCancelAtEachStepLeavesNothing(t *testing.T) {
	// Each store takes 10 ms to answer; the context ends at every odd
	// millisecond of the conversation, between and amid the calls.
	for _, order := range []quorum.Order{quorum.InOrder, quorum.FirstThenRest, quorum.AllAtOnce} {
		for ms := 1; ms <= 61; ms += 4 {
			t.Run(fmt.Sprintf("%v/%dms", order, ms), func(t *testing.T) {
				inBubble(t, 5, func(t *testing.T, b *bed) {
					l := b.locker(quorum.AskOrder(order))
					for i, sp := range b.spoil {
						sp.Set(storetest.Always(storetest.Latency(4*time.Millisecond), storetest.LateReply(time.Duration(5+i)*time.Millisecond)))
					}
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(ms)*time.Millisecond)
					defer cancel()
					lease, err := l.Acquire(ctx, "k")
					if (lease == nil) == (err == nil) {
						t.Fatalf("exactly one of lease and error must be nil: %v, %v", lease, err)
					}
					if lease != nil {
						if err := lease.Release(ctx); err != nil {
							t.Error(err)
						}
					}
					b.settle()
					b.checkEmpty("k")
				})
			})
		}
	}
}

func TestR39NeverAskedStoresSeeNoCall(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		order := b.ask("k")
		b.rival("k", time.Minute, order[0], order[1], order[2])
		if _, err := b.locker().TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Fatal(err)
		}
		b.settle()
		for _, i := range order[3:] {
			if got := len(b.spoil[i].Log(nil)); got != 0 {
				t.Errorf("store %d was not needed and saw %d calls", i, got)
			}
		}
		if got := b.calls(storetest.VerbRelease); got != 0 {
			t.Errorf("all refusals were clean, so that there was nothing to undo, and %d releases were sent", got)
		}
	})
}

func TestR05OwnersAreFreshRandomBits(t *testing.T) {
	// F170: 128 bits from crypto/rand for each acquisition.
	inBubble(t, 1, func(t *testing.T, b *bed) {
		l := b.locker()
		seen := map[quorum.OwnerID]bool{}
		for i := range 1000 {
			lease := must(t, l, fmt.Sprint(i))
			_ = lease
		}
		var or, and quorum.OwnerID
		for i := range and {
			and[i] = 0xff
		}
		for _, c := range b.spoil[0].Log(storetest.Verbs(storetest.VerbAcquire)) {
			id := c.Request.Owner.ID
			if seen[id] {
				t.Fatalf("two acquisitions share an owner")
			}
			seen[id] = true
			for i := range id {
				or[i] |= id[i]
				and[i] &= id[i]
			}
		}
		for i := range or {
			if or[i] != 0xff || and[i] != 0 {
				t.Errorf("byte %d of the owners has constant bits: or %08b, and %08b", i, or[i], and[i])
			}
		}
	})
}

func TestR06DoubledRequestsOfOneAttemptAreGrantedOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		for _, sp := range b.spoil {
			sp.Pretend(func(l *quorum.Limits) { l.Doubles = true })
			sp.Set(storetest.Always(storetest.Double(20 * time.Millisecond)))
		}
		l := b.locker()
		last := int64(0)
		for range 20 {
			lease := must(t, l, "k")
			if lease.Token() <= last {
				t.Fatalf("token %d after %d", lease.Token(), last)
			}
			last = lease.Token()
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		b.settle()
		b.checkEmpty("k")
	})
}

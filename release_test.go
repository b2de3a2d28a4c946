package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func TestR25LocalFlagFallsBeforeTheRemoteKey(t *testing.T) {
	// F029: inside the first delete call the holder has already stopped.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		var lease *quorum.Lease
		early := 0
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbRelease), storetest.Do(func() {
				if lease.Err() == nil || lease.Context().Err() == nil || lease.Remaining() != 0 {
					early++
				}
			})))
		}
		for range 1000 {
			lease = must(t, l, "k")
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if early != 0 {
			t.Errorf("%d of 3000 deletes came while the holder still believed", early)
		}
	})
}

func TestR52Release(t *testing.T) {
	t.Run("F103 is idempotent", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker()
			lease := must(t, l, "k")
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			b.settle()
			other := must(t, l, "k")
			b.settle()
			calls := b.calls(storetest.VerbRelease)
			errs := make(chan error, 10)
			for range 10 {
				go func() { errs <- lease.Release(t.Context()) }()
			}
			for range 10 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
			if got := b.calls(storetest.VerbRelease); got != calls || other.Err() != nil || b.held("k") != 3 {
				t.Errorf("%d further calls, the next holder says %v and is in %d stores", got-calls, other.Err(), b.held("k"))
			}
			if !errors.Is(lease.Err(), quorum.ErrReleased) || !errors.Is(context.Cause(lease.Context()), quorum.ErrReleased) {
				t.Errorf("a released lease says %v, and its context %v", lease.Err(), context.Cause(lease.Context()))
			}
			if err := lease.Extend(t.Context(), 20*time.Second); !errors.Is(err, quorum.ErrReleased) {
				t.Errorf("Extend after Release = %v", err)
			}
		})
	})
	t.Run("F050 works with a cancelled context", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			lease := must(t, b.locker(quorum.TTL(30*time.Second)), "k")
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := lease.Release(ctx); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			b.checkEmpty("k")
		})
	})
	t.Run("a minority that fails is nil and is told", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.ReleaseLimit(2 * time.Second))
			lease := must(t, l, "k")
			b.settle()
			b.spoil[1].Set(storetest.On(storetest.Verbs(storetest.VerbRelease), storetest.Fail(errors.New("no route"))))
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("two of three answered: %v", err)
			}
			synctest.Wait()
			votes := lease.Votes()
			if votes[0].Outcome != quorum.OutcomeGranted || votes[1].Outcome != quorum.OutcomeUnknown || votes[1].Err == nil {
				t.Errorf("votes of the release: %+v", votes)
			}
			b.spoil[1].Set()
			time.Sleep(2 * time.Second)
			b.checkEmpty("k") // the locker went on trying
		})
	})
	t.Run("F094 a failed release can be repeated", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(time.Minute), quorum.ReleaseLimit(time.Second))
			lease := must(t, l, "k")
			b.settle()
			for _, sp := range b.spoil {
				sp.Set(storetest.On(storetest.Verbs(storetest.VerbRelease), storetest.Fail(nil)))
			}
			if err := lease.Release(t.Context()); !errors.Is(err, quorum.ErrNoQuorum) {
				t.Errorf("nobody answered: %v", err)
			}
			time.Sleep(2 * time.Second) // the locker has given up
			if len(b.seen(quorum.EventReleaseFail)) != 3 {
				t.Errorf("giving up was told %d times, want once a store", len(b.seen(quorum.EventReleaseFail)))
			}
			for _, sp := range b.spoil {
				sp.Set()
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("after the stores came back: %v", err)
			}
			synctest.Wait()
			b.checkEmpty("k")
		})
	})
	t.Run("stores that hang bound nothing but their own call", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(2 * time.Second))
			lease := must(t, l, "k")
			b.settle()
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Freeze()))
			}
			start := time.Now()
			err := lease.Release(t.Context())
			if !errors.Is(err, quorum.ErrNoQuorum) || !strings.Contains(err.Error(), "(0 granted, 2 needed: a, b, c unknown: no answer in time)") {
				t.Errorf("three frozen stores: %v", err)
			}
			within(t, "Release", since(start), 0, 550*time.Millisecond)
			for _, sp := range b.spoil {
				sp.Thaw()
			}
		})
	})
}

func TestF004ReleaseAfterExpiryTouchesNobodyElse(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		stale := must(t, l, "k", quorum.TTL(200*time.Millisecond), quorum.NoRenew())
		time.Sleep(300 * time.Millisecond)
		owner := must(t, l, "k", quorum.TTL(10*time.Second))
		b.settle()
		for range 2 {
			if err := stale.Release(t.Context()); !errors.Is(err, quorum.ErrLost) {
				t.Errorf("releasing a lost lease = %v, want ErrLost", err)
			}
		}
		if b.held("k") != 3 || owner.Err() != nil {
			t.Errorf("the owner is in %d stores and says %v", b.held("k"), owner.Err())
		}
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Errorf("a third client got %v", err)
		}
	})
}

func TestF017LateReleaseTouchesNoLaterLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		first := must(t, l, "k")
		b.settle()
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Nth(storetest.VerbRelease, 1), storetest.DropReply(nil)))
		}
		_ = first.Release(t.Context())
		second := must(t, l, "k")
		_ = first.Release(t.Context())
		time.Sleep(6 * time.Second) // the first renewal repairs what was not asked because it had failed
		if b.held("k") != 3 || second.Err() != nil {
			t.Errorf("the second lease is in %d stores and says %v", b.held("k"), second.Err())
		}
	})
}

func TestF130F131ReleaseOfAnExpiredKey(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		l := b.locker()
		lease := must(t, l, "k")
		b.settle()
		b.wipe("k", 0, 1)
		calls := b.calls(storetest.VerbRelease)
		start := time.Now()
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("gone on two, present on three: %v", err)
		}
		within(t, "Release", since(start), 0, 100*time.Millisecond)
		synctest.Wait()
		if got := b.calls(storetest.VerbRelease) - calls; got != 5 {
			t.Errorf("one round of releases made %d calls", got)
		}
	})
}

func TestF058RenewalNeverBringsAReleasedLockBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		random := rand.New(rand.NewPCG(58, 1))
		l := b.locker(quorum.TTL(30*time.Second), quorum.RenewEvery(time.Millisecond))
		for i := range 2000 {
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(
					storetest.Latency(time.Duration(random.IntN(2500))*time.Microsecond),
					storetest.LateReply(time.Duration(random.IntN(2500))*time.Microsecond)))
			}
			key := fmt.Sprint("k", i%7)
			lease := must(t, l, key)
			time.Sleep(time.Duration(random.IntN(10_000)) * time.Microsecond)
			if err := lease.Release(t.Context()); err != nil {
				t.Fatalf("cycle %d: %v", i, err)
			}
			time.Sleep(100 * time.Millisecond)
			if b.held(key) != 0 {
				t.Fatalf("cycle %d: 100 ms after the release %d stores hold the key", i, b.held(key))
			}
		}
		// Nothing is sent for a lease that was given back.
		extends := b.calls(storetest.VerbExtend)
		time.Sleep(time.Minute)
		if got := b.calls(storetest.VerbExtend); got != extends {
			t.Errorf("%d extensions after the last release", got-extends)
		}
	})
}

func TestF101ReleaseDuringARenewal(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(3 * time.Second))
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbExtend), storetest.Latency(100*time.Millisecond)))
		}
		for range 100 {
			lease := must(t, l, "k")
			time.Sleep(time.Second + 10*time.Millisecond)
			start := time.Now()
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			within(t, "Release", since(start), 0, 300*time.Millisecond)
			synctest.Wait()
			b.checkEmpty("k")
		}
	})
}

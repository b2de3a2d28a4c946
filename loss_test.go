package quorum_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func TestR22LossByTheLocalClock(t *testing.T) {
	// F028: from now on every call hangs, and no store says anything.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(3 * time.Second))
		lease := must(t, l, "k")
		start := time.Now()
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Hang()))
		}
		<-lease.Context().Done()
		within(t, "the loss", since(start), 2968*time.Millisecond, 2968*time.Millisecond)
		if lease.Err() == nil || lease.Remaining() != 0 || !errors.Is(context.Cause(lease.Context()), quorum.ErrLost) {
			t.Errorf("after it: %v, %v remain, cause %v", lease.Err(), lease.Remaining(), context.Cause(lease.Context()))
		}
		for _, sp := range b.spoil {
			sp.Set()
		}
		time.Sleep(5 * time.Second)
		if lease.Err() == nil {
			t.Error("a lost lease came back")
		}
	})
}

func TestR23ReasonsOfLoss(t *testing.T) {
	for _, tc := range []struct {
		reason quorum.LossReason
		lose   func(t *testing.T, b *bed, l *quorum.Locker)
		option quorum.Option
	}{
		{quorum.LostExpired, func(_ *testing.T, b *bed, _ *quorum.Locker) {
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Fail(nil)))
			}
		}, quorum.NoRenew()},
		{quorum.LostTakenOver, func(_ *testing.T, b *bed, _ *quorum.Locker) { b.steal("k", 0, 1, 2) }, quorum.RenewEvery(time.Second)},
		{quorum.LostQuorum, func(_ *testing.T, b *bed, _ *quorum.Locker) { b.wipe("k", 0, 1, 2) }, quorum.RenewEvery(time.Second)},
		{quorum.LostMaxHold, func(*testing.T, *bed, *quorum.Locker) {}, quorum.MaxHold(2 * time.Second)},
		{quorum.LostClosed, func(t *testing.T, _ *bed, l *quorum.Locker) { _ = l.Close(t.Context()) }, quorum.RenewEvery(time.Second)},
	} {
		t.Run(tc.reason.String(), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				l := b.locker(quorum.TTL(3 * time.Second))
				lease := must(t, l, "k", tc.option)
				b.settle()
				tc.lose(t, b, l)
				time.Sleep(5 * time.Second)
				lost := (*quorum.LostError)(nil)
				if !errors.As(lease.Err(), &lost) || lost.Reason != tc.reason || lost.Token != lease.Token() {
					t.Errorf("the lease says %v, want reason %q", lease.Err(), tc.reason)
				}
				if n := len(b.seen(quorum.EventLost)); n != 1 {
					t.Errorf("the loss was told %d times", n)
				}
			})
		})
	}
}

func TestF062MaxHold(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(time.Second), quorum.MaxHold(5*time.Second))
		start := time.Now()
		lease := must(t, l, "k")
		<-lease.Context().Done()
		within(t, "the hold", since(start), 5*time.Second, 5*time.Second)
		time.Sleep(time.Second)
		b.checkEmpty("k")
	})
}

func TestR23WarningBeforeTheEnd(t *testing.T) {
	// F158: the connection is cut, and a local timer warns.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(10*time.Second), quorum.Expiring(3*time.Second))
		lease := must(t, l, "k")
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Hang()))
		}
		start := time.Now()
		time.Sleep(6897 * time.Millisecond)
		synctest.Wait()
		if n := len(b.seen(quorum.EventExpiring)); n != 0 {
			t.Errorf("%d warnings too early", n)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		warned := b.seen(quorum.EventExpiring)
		if len(warned) != 1 || warned[0].Left != 3*time.Second {
			t.Errorf("%v after the cut: %+v, want one warning 3 s before the end", since(start), warned)
		}
		<-lease.Context().Done()
	})
}

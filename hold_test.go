package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func TestR03AcquireContextDoesNotEndTheLease(t *testing.T) {
	// F061: the context of the wait is over long before the work is.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(2 * time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		type key struct{}
		lease, err := l.Acquire(context.WithValue(ctx, key{}, "value"), "k")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond)
		cancel()
		time.Sleep(4500 * time.Millisecond)
		if lease.Err() != nil || lease.Context().Err() != nil || b.held("k") != 3 {
			t.Errorf("at three TTLs: %v, %v, held in %d stores", lease.Err(), lease.Context().Err(), b.held("k"))
		}
		if got := lease.Context().Value(key{}); got != "value" {
			t.Errorf("the lease's context carries %v of the values given to Acquire", got)
		}
	})
}

func TestR15RenewalIsOnByDefault(t *testing.T) {
	// An hour of virtual time, a tenth of all calls dropped.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(10 * time.Second))
		for i, sp := range b.spoil {
			sp.Set(storetest.On(func(c storetest.Call) bool { return c.Verb == storetest.VerbExtend && (c.N+3*i)%10 == 0 }, storetest.Hang()))
		}
		lease := must(t, l, "k")
		time.Sleep(time.Hour)
		if err := lease.Err(); err != nil {
			t.Errorf("after an hour: %v", err)
		}
		if n := len(b.seen(quorum.EventRenewed)); n < 1000 {
			t.Errorf("%d renewals in an hour with a TTL of 10 s", n)
		}
	})
}

func TestR16OneFailedRenewalIsNotLoss(t *testing.T) {
	// F065: the first renewal hangs, later ones work.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(9 * time.Second))
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Nth(storetest.VerbExtend, 1), storetest.Hang()))
		}
		lease := must(t, l, "k")
		time.Sleep(12 * time.Second)
		if err := lease.Err(); err != nil {
			t.Errorf("one hanging renewal lost the lease: %v", err)
		}
		if len(b.seen(quorum.EventRenewFailed)) != 1 {
			t.Errorf("%d failed renewals were told, want 1", len(b.seen(quorum.EventRenewFailed)))
		}
	})
	t.Run("a clear not-owner answer of enough stores ends the lease at once", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(9 * time.Second))
			lease := must(t, l, "k")
			b.settle()
			b.steal("k", 0, 1)
			time.Sleep(2600 * time.Millisecond)
			synctest.Wait()
			lost := (*quorum.LostError)(nil)
			if !errors.As(context.Cause(lease.Context()), &lost) || lost.Reason != quorum.LostTakenOver {
				t.Errorf("after the first renewal: %v, want taken over", context.Cause(lease.Context()))
			}
		})
	})
}

// steal gives the key to a rival in the stores, whoever holds it.
func (b *bed) steal(key string, stores ...int) {
	b.t.Helper()
	for _, i := range stores {
		b.wipe(key, i)
		b.rival(key, time.Minute, i)
	}
}

// wipe deletes the vote of a key, as an operator's DEL would.
func (b *bed) wipe(key string, stores ...int) {
	b.t.Helper()
	for _, i := range stores {
		for _, c := range b.spoil[i].Log(storetest.Verbs(storetest.VerbAcquire)) {
			if c.Request.Key == key {
				r := c.Request
				r.Entomb = false
				_ = b.memory[i].Release(context.Background(), r)
			}
		}
	}
}

func TestR17ValidityCountsFromTheRequest(t *testing.T) {
	t.Run("F010 acquisition", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(10 * time.Second))
			for _, sp := range b.spoil {
				sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.LateReply(150*time.Millisecond)))
			}
			lease := must(t, l, "k", quorum.NoRenew())
			if got := lease.Remaining(); got != 9598*time.Millisecond {
				t.Errorf("300 ms into a TTL of 10 s %v remain, want 9.598s", got)
			}
			time.Sleep(time.Second)
			if got := lease.Remaining(); got != 8598*time.Millisecond {
				t.Errorf("a second later %v remain, want 8.598s", got)
			}
		})
	})
	t.Run("F011 extension", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(time.Second), quorum.CallLimit(500*time.Millisecond))
			lease := must(t, l, "k", quorum.NoRenew())
			for _, sp := range b.spoil {
				sp.Set(storetest.On(storetest.Verbs(storetest.VerbExtend), storetest.LateReply(400*time.Millisecond)))
			}
			time.Sleep(200 * time.Millisecond)
			if err := lease.Extend(t.Context(), time.Second); err != nil {
				t.Fatal(err)
			}
			if got := lease.Remaining(); got != 588*time.Millisecond {
				t.Errorf("400 ms after the extension left %v remain, want 588ms", got)
			}
		})
	})
	t.Run("0 after loss and after release", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(time.Second))
			lease, other := must(t, l, "k", quorum.NoRenew()), must(t, l, "j")
			_ = other.Release(t.Context())
			time.Sleep(time.Second)
			if lease.Remaining() != 0 || other.Remaining() != 0 {
				t.Errorf("%v and %v remain", lease.Remaining(), other.Remaining())
			}
		})
	})
}

func TestF139NoRenewEndsAtTheTTL(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(time.Second))
		start := time.Now()
		lease := must(t, l, "k", quorum.NoRenew())
		<-lease.Context().Done()
		within(t, "the loss", since(start), 988*time.Millisecond, 988*time.Millisecond)
		if b.calls(storetest.VerbExtend) != 0 {
			t.Errorf("%d extensions without renewal", b.calls(storetest.VerbExtend))
		}
		if _, err := l.Acquire(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		within(t, "the next acquisition", since(start), time.Second, 1200*time.Millisecond)
	})
}

func TestR18ExplicitExtension(t *testing.T) {
	t.Run("F136 never shortens", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(10 * time.Second))
			lease := must(t, l, "k", quorum.NoRenew())
			time.Sleep(2 * time.Second)
			before := lease.Remaining()
			if err := lease.Extend(t.Context(), 5*time.Second); err != nil || lease.Remaining() != before {
				t.Errorf("a shorter time: %v, %v remain, want nil and %v", err, lease.Remaining(), before)
			}
			if b.calls(storetest.VerbExtend) != 0 {
				t.Error("a shorter time was sent")
			}
			if err := lease.Extend(t.Context(), 12*time.Second); err != nil {
				t.Fatal(err)
			}
			if got := lease.Remaining(); got != 12*time.Second-122*time.Millisecond {
				t.Errorf("%v remain of 12 s", got)
			}
			synctest.Wait()
			for i := range b.memory {
				if h := b.holders(i, "k"); len(h) > 0 && h[0].Left != 12*time.Second {
					t.Errorf("store %d keeps the vote for %v, want 12s", i, h[0].Left)
				}
			}
		})
	})
	t.Run("an outage is no loss", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(10 * time.Second))
			lease := must(t, l, "k", quorum.NoRenew())
			token, before := lease.Token(), lease.Remaining()
			for _, sp := range b.spoil {
				sp.Set(storetest.On(storetest.Verbs(storetest.VerbExtend), storetest.Fail(nil)))
			}
			err := lease.Extend(t.Context(), 20*time.Second)
			if !errors.Is(err, quorum.ErrNoQuorum) || errors.Is(err, quorum.ErrLost) {
				t.Errorf("an outage gave %v, want ErrNoQuorum", err)
			}
			if lease.Err() != nil || lease.Remaining() != before || lease.Token() != token {
				t.Errorf("after it: %v, %v remain of %v, token %d of %d", lease.Err(), lease.Remaining(), before, lease.Token(), token)
			}
			time.Sleep(before)
			if lost := (*quorum.LostError)(nil); !errors.As(lease.Err(), &lost) || lost.Reason != quorum.LostExpired {
				t.Errorf("at its old end: %v, want expired", lease.Err())
			}
		})
	})
	t.Run("ErrLost when a quorum can no longer be made", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(10 * time.Second))
			lease := must(t, l, "k", quorum.NoRenew())
			b.settle()
			b.wipe("k", 0, 1)
			err := lease.Extend(t.Context(), 20*time.Second)
			if lost := (*quorum.LostError)(nil); !errors.As(err, &lost) || lost.Reason != quorum.LostQuorum || !errors.Is(err, quorum.ErrLost) {
				t.Errorf("two votes of three gone: %v, want lost, quorum", err)
			}
			b.settle()
			if b.held("k") != 1 {
				t.Errorf("%d stores hold it: a lost lease must put nothing back", b.held("k"))
			}
		})
	})
	t.Run("bad times", func(t *testing.T) {
		inBubble(t, 1, func(t *testing.T, b *bed) {
			lease := must(t, b.locker(), "k")
			for _, ttl := range []time.Duration{0, -1, 1<<63 - 1, -1 << 63, 2 * time.Minute} {
				if err := lease.Extend(t.Context(), ttl); !errors.Is(err, quorum.ErrInvalidTTL) {
					t.Errorf("Extend(%d) = %v, want ErrInvalidTTL", ttl, err)
				}
			}
			if n := b.calls(storetest.VerbExtend); n != 0 {
				t.Errorf("bad times made %d calls", n)
			}
		})
	})
	t.Run("several at once share rounds", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			lease := must(t, b.locker(), "k")
			errs := make(chan error, 50)
			for i := range 50 {
				go func() { errs <- lease.Extend(t.Context(), time.Duration(16+i%5)*time.Second) }()
			}
			for range 50 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	})
}

func TestR26TokensGrow(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		last := int64(0)
		for range 200 {
			lease := must(t, l, "k")
			if lease.Token() <= last {
				t.Fatalf("token %d after %d", lease.Token(), last)
			}
			last = lease.Token()
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestR27TokenIsConstant(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(3 * time.Second))
		lease := must(t, l, "k")
		token := lease.Token()
		time.Sleep(21 * time.Second)
		if err := lease.Extend(t.Context(), 10*time.Second); err != nil {
			t.Fatal(err)
		}
		if lease.Token() != token {
			t.Errorf("token %d became %d", token, lease.Token())
		}
		b.wipe("k", 0, 1, 2)
		time.Sleep(11 * time.Second)
		if lease.Err() == nil || lease.Token() != token {
			t.Errorf("after the loss (%v) the token is %d, want %d", lease.Err(), lease.Token(), token)
		}
	})
}

func TestR47MissingMinorityIsRepaired(t *testing.T) {
	t.Run("F067 one store at a time", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(3 * time.Second))
			lease := must(t, l, "k")
			b.settle()
			for _, i := range []int{0, 1, 2, 0} {
				b.wipe("k", i)
				time.Sleep(1100 * time.Millisecond)
				synctest.Wait()
				if b.held("k") != 3 || lease.Err() != nil {
					t.Fatalf("after store %d lost the vote: held in %d, %v", i, b.held("k"), lease.Err())
				}
			}
		})
	})
	t.Run("F007 a bare majority that loses one is lost, and puts nothing back", func(t *testing.T) {
		inBubble(t, 5, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(3 * time.Second))
			order := b.ask("k")
			for _, i := range order[3:] {
				b.spoil[i].Set(storetest.Always(storetest.Fail(nil)))
			}
			lease := must(t, l, "k")
			b.settle()
			b.wipe("k", order[2])
			for _, i := range order[3:] {
				b.spoil[i].Set()
			}
			rival := must(t, b.locker(quorum.TTL(30*time.Second)), "k")
			if rival.Token() <= lease.Token() {
				t.Errorf("the rival's token %d is not above %d", rival.Token(), lease.Token())
			}
			time.Sleep(1100 * time.Millisecond)
			synctest.Wait()
			if lease.Err() == nil {
				t.Error("the first holder goes on after its first renewal")
			}
			if rival.Err() != nil {
				t.Errorf("the rival: %v", rival.Err())
			}
		})
	})
	t.Run("F007 held by all, one loses it", func(t *testing.T) {
		inBubble(t, 5, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(3 * time.Second))
			order := b.ask("k")
			for _, i := range order[3:] {
				b.spoil[i].Set(storetest.Always(storetest.Fail(nil)))
			}
			lease := must(t, l, "k")
			for _, i := range order[3:] {
				b.spoil[i].Set()
			}
			time.Sleep(1500 * time.Millisecond)
			b.wipe("k", order[2])
			if _, err := b.locker().TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
				t.Errorf("a rival got %v, want ErrHeld", err)
			}
			if lease.Err() != nil {
				t.Error(lease.Err())
			}
		})
	})
}

func TestF005StaleHolderCannotExtend(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		stale := must(t, l, "k", quorum.TTL(300*time.Millisecond), quorum.NoRenew())
		time.Sleep(500 * time.Millisecond)
		owner := must(t, l, "k", quorum.TTL(10*time.Second), quorum.NoRenew())
		left := owner.Remaining()
		if err := stale.Extend(t.Context(), 10*time.Second); !errors.Is(err, quorum.ErrLost) {
			t.Errorf("the stale holder's extension gave %v, want ErrLost", err)
		}
		if stale.Context().Err() == nil || owner.Remaining() != left || owner.Err() != nil {
			t.Errorf("stale: %v, owner: %v with %v of %v", stale.Err(), owner.Err(), owner.Remaining(), left)
		}
	})
}

func TestF026OneFailedExtensionReleasesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(3 * time.Second))
		lease := must(t, l, "k")
		b.settle()
		b.spoil[0].Set(storetest.On(storetest.Verbs(storetest.VerbExtend), storetest.Fail(nil)))
		if err := lease.Extend(t.Context(), 4*time.Second); err != nil {
			t.Error(err)
		}
		time.Sleep(8 * time.Second)
		if n := b.calls(storetest.VerbRelease); n != 0 || lease.Err() != nil {
			t.Errorf("%d releases, and the lease says %v", n, lease.Err())
		}
	})
}

func TestF100PanicOfAStoreInRenewal(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(3 * time.Second))
		lease, other := must(t, l, "k"), must(t, l, "other")
		b.settle()
		b.spoil[1].Set(storetest.On(storetest.Verbs(storetest.VerbExtend), storetest.Panic("boom")))
		time.Sleep(7 * time.Second)
		if lease.Err() != nil || other.Err() != nil {
			t.Errorf("a panicking minority lost leases: %v, %v", lease.Err(), other.Err())
		}
		failed := b.seen(quorum.EventStoreFailed)
		if len(failed) == 0 || failed[0].Store != "b" {
			t.Errorf("the panic was told as %+v, want a failure of store b", failed)
		}
	})
}

func TestF013SuspendEndsTheLease(t *testing.T) {
	// R20: the clock that counts sleep jumps; timers have not fired yet.
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3, quorum.Consensus())
		c := &jumping{start: time.Now()}
		l := b.locker(quorum.WithClock(c), quorum.TTL(30*time.Second))
		lease := must(t, l, "k")
		c.jump(time.Minute)
		if lease.Err() == nil || lease.Remaining() != 0 || lease.Context().Err() == nil {
			t.Errorf("after a minute asleep: %v, %v remain, context %v", lease.Err(), lease.Remaining(), lease.Context().Err())
		}
	})
}

func TestRoundsOfManyLeasesDoNotDisturbEachOther(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(3 * time.Second))
		var leases []*quorum.Lease
		for i := range 50 {
			leases = append(leases, must(t, l, fmt.Sprint("k", i)))
		}
		time.Sleep(time.Minute)
		for _, lease := range leases {
			if lease.Err() != nil {
				t.Error(lease.Err())
			}
		}
	})
}

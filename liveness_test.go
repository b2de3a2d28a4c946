package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func TestR14NameOfADeadHolderIsFreeAfterItsTTL(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(2 * time.Second))
		b.rival("k", 2*time.Second, 0, 1, 2) // it takes the lock and is never heard of again
		start := time.Now()
		must(t, l, "k")
		within(t, "the take-over", since(start), 2*time.Second, 3*time.Second)
	})
}

func TestR40OneDeadlineForAllStores(t *testing.T) {
	// Every store takes its whole slice; the shares never add up to more than
	// the TTL, and no call may outlast what is left of it.
	for _, n := range []int{1, 3, 5} {
		inBubble(t, n, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(2*time.Second), quorum.CallLimit(1500*time.Millisecond))
			for _, sp := range b.spoil {
				sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Hang()))
			}
			start := time.Now()
			_, err := l.TryAcquire(t.Context(), "k")
			within(t, fmt.Sprintf("an attempt at %d hanging stores", n), since(start), 0, 2050*time.Millisecond)
			if err == nil {
				t.Error("nobody answered, and it was acquired")
			}
			for _, sp := range b.spoil {
				for _, c := range sp.Log(storetest.Verbs(storetest.VerbAcquire)) {
					if end := c.At.Add(c.Left); end.After(start.Add(2 * time.Second)) {
						t.Errorf("a call sent at %v may last until %v, after the deadline", c.At.Sub(start), end.Sub(start))
					}
				}
			}
		})
	}
}

func TestR49UndoReachesEveryStoreThatMayRemember(t *testing.T) {
	// Whatever subset of the stores grants and cannot say so, nothing is left.
	for lost := range 8 {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			for i, sp := range b.spoil {
				if lost>>i&1 == 1 {
					sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.DropReply(nil)))
				} else {
					sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Fail(nil)))
				}
			}
			if _, err := b.locker().TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrNoQuorum) {
				t.Errorf("lost replies %03b: %v, want ErrNoQuorum", lost, err)
			}
			b.settle()
			b.checkEmpty("k")
		})
	}
}

func TestF074EagerClientDoesNotStarveAPoliteOne(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		stop := make(chan struct{})
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for {
				select {
				case <-stop:
					return
				default:
				}
				lease, err := l.Acquire(t.Context(), "k")
				if err != nil {
					continue
				}
				time.Sleep(10 * time.Millisecond)
				_ = lease.Release(t.Context())
				time.Sleep(time.Millisecond)
			}
		}()
		for round := range 20 {
			start := time.Now()
			lease := must(t, l, "k")
			if d := since(start); d > 5*time.Second {
				t.Errorf("round %d: the polite client waited %v", round, d)
			}
			_ = lease.Release(t.Context())
			time.Sleep(20 * time.Millisecond)
		}
		close(stop)
		<-gone
	})
}

func TestF079KeysDoNotWaitForEachOther(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		must(t, l, "a")
		must(t, l, "c")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = l.Acquire(ctx, "c") }()
		synctest.Wait()
		start := time.Now()
		must(t, l, "b")
		within(t, "taking b while somebody waits for c", since(start), 0, 100*time.Millisecond)
		cancel()
	})
}

func TestF080ClientsThatStartTogetherDoNotSplitForLong(t *testing.T) {
	for run := range 100 {
		inBubble(t, 5, func(t *testing.T, b *bed) {
			for i, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Latency(time.Duration(1+(run*7+i*3)%5) * time.Millisecond)))
			}
			type result struct {
				lease *quorum.Lease
				took  time.Duration
			}
			won := make(chan result, 3)
			for range 3 {
				l := b.locker(quorum.AskOrder(quorum.Order(run % 3)))
				go func() {
					start := time.Now()
					lease, err := l.Acquire(t.Context(), "k", quorum.Wait(5*time.Second))
					if err == nil {
						won <- result{lease, since(start)}
					}
				}()
			}
			first := <-won
			if first.took > 2*time.Second {
				t.Errorf("run %d: the first winner after %v", run, first.took)
			}
			_ = first.lease.Release(t.Context())
		})
	}
}

func TestF086FailedTryHoldsNothingInTheProcess(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		first, second := b.locker(), b.locker()
		lease := must(t, first, "k")
		if _, err := second.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Fatal(err)
		}
		_ = lease.Release(t.Context())
		synctest.Wait()
		if lease, err := second.TryAcquire(t.Context(), "k"); err != nil {
			t.Errorf("after the release: %v", err)
		} else {
			_ = lease.Release(t.Context())
		}
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Fail(nil)))
		}
		_, _ = second.TryAcquire(t.Context(), "k")
		for _, sp := range b.spoil {
			sp.Set()
		}
		if _, err := second.TryAcquire(t.Context(), "k"); err != nil {
			t.Errorf("after an outage: %v", err)
		}
	})
}

func TestF116RoundTripsOfEachOrder(t *testing.T) {
	for _, tc := range []struct {
		order quorum.Order
		most  time.Duration
	}{
		{quorum.InOrder, 3 * 50 * time.Millisecond},
		{quorum.FirstThenRest, 2 * 50 * time.Millisecond},
		{quorum.AllAtOnce, 50 * time.Millisecond},
	} {
		inBubble(t, 5, func(t *testing.T, b *bed) {
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Latency(50 * time.Millisecond)))
			}
			l := b.locker(quorum.AskOrder(tc.order))
			start := time.Now()
			lease := must(t, l, "k")
			within(t, fmt.Sprintf("Acquire %v", tc.order), since(start), tc.most, tc.most)
			time.Sleep(time.Second)
			start = time.Now()
			if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
				t.Fatal(err)
			}
			within(t, "Extend", since(start), 50*time.Millisecond, 50*time.Millisecond)
			start = time.Now()
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			within(t, "Release", since(start), 50*time.Millisecond, 50*time.Millisecond)
		})
	}
}

func TestF118F119WaitingAsksSeldom(t *testing.T) {
	t.Run("contention", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.TTL(30 * time.Second))
			must(t, l, "k")
			b.settle()
			before := b.calls(storetest.VerbAcquire)
			for range 50 {
				go func() { _, _ = l.Acquire(t.Context(), "k", quorum.Wait(10*time.Second)) }()
			}
			time.Sleep(10 * time.Second)
			if got := b.calls(storetest.VerbAcquire) - before; got > 3000 {
				t.Errorf("50 waiters made %d calls in 10 s", got)
			}
			time.Sleep(time.Second)
		})
	})
	t.Run("outage", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker()
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Fail(nil)))
			}
			_, _ = l.Acquire(t.Context(), "k", quorum.Wait(10*time.Second))
			if got := b.calls(storetest.VerbAcquire); got > 200*3 {
				t.Errorf("one waiter made %d calls in 10 s", got)
			}
		})
	})
}

func TestF133ReleaseWhileAnotherSpins(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.Backoff(time.Millisecond, time.Millisecond))
		done := make(chan struct{})
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			for {
				select {
				case <-done:
					return
				case <-time.After(time.Millisecond):
					if lease, err := l.TryAcquire(t.Context(), "k"); err == nil {
						_ = lease.Release(t.Context())
					}
				}
			}
		}()
		for i := range 1000 {
			lease := must(t, l, "k")
			if err := lease.Release(t.Context()); err != nil {
				t.Fatalf("cycle %d: %v", i, err)
			}
		}
		close(done)
		<-gone
	})
}

func TestF142TryOfAHeldKeyIsQuick(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		must(t, l, "k")
		b.settle()
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Latency(20 * time.Millisecond)))
		}
		start := time.Now()
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Fatal(err)
		}
		within(t, "TryAcquire", since(start), 0, 60*time.Millisecond)
	})
}

func TestF143NoHiddenLimitOnTries(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		first := must(t, l, "k")
		time.AfterFunc(15*time.Second, func() { _ = first.Release(context.Background()) })
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(ctx, "k"); err != nil {
			t.Fatal(err)
		}
		within(t, "the wait", since(start), 15*time.Second, 16*time.Second)
	})
}

func TestF092ColdConnectionIsNeverContention(t *testing.T) {
	// The first call to each store pays for a handshake that is longer than its
	// limit; the error says what struck.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Nth(storetest.VerbAcquire, 1), storetest.Latency(80*time.Millisecond)))
		}
		l := b.locker(quorum.CallLimit(50 * time.Millisecond))
		_, err := l.TryAcquire(t.Context(), "k")
		if errors.Is(err, quorum.ErrHeld) || !errors.Is(err, quorum.ErrNoQuorum) || !strings.Contains(err.Error(), "no answer within 50ms (CallLimit)") {
			t.Errorf("cold stores gave %v, want ErrNoQuorum and the limit that struck", err)
		}
	})
}

func TestR28TokensAreOrderedWhateverAnswers(t *testing.T) {
	// Each acquisition reaches another majority, and failed attempts drive the
	// counters apart in between.
	inBubble(t, 5, func(t *testing.T, b *bed) {
		l := b.locker()
		last := int64(math.MinInt64)
		for round := range 100 {
			cut := storetest.Always(storetest.Fail(nil))
			for i, sp := range b.spoil {
				if i == round%5 || i == (round/5+round+1)%5 {
					sp.Set(cut)
				} else {
					sp.Set()
				}
			}
			lease := must(t, l, "k")
			if lease.Token() <= last {
				t.Fatalf("round %d: token %d after %d", round, lease.Token(), last)
			}
			last = lease.Token()
			_ = lease.Release(t.Context())
			for i, sp := range b.spoil {
				if i == round%5 {
					sp.Set()
				} else {
					sp.Set(cut)
				}
			}
			for range round % 4 {
				_, _ = l.TryAcquire(t.Context(), "k")
			}
		}
	})
}

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

func TestF071CloseEndsEveryWait(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		b.rival("k", time.Minute, 0, 1, 2)
		results := make(chan error, 100)
		for range cap(results) {
			go func() { results <- failed(l.Acquire(context.Background(), "k")) }()
		}
		time.Sleep(5 * time.Second)
		start := time.Now()
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		within(t, "Close", since(start), 0, time.Second)
		for range cap(results) {
			if err := <-results; overlap(err) != "ErrClosed" {
				t.Errorf("a waiter got %v, want ErrClosed and nothing else", err)
			}
		}
		within(t, "the end of the waits", since(start), 0, time.Second)
		before, start := b.calls(), time.Now()
		if _, err := l.Acquire(t.Context(), "other"); overlap(err) != "ErrClosed" {
			t.Errorf("Acquire after Close = %v, want ErrClosed", err)
		}
		if _, err := l.TryAcquire(t.Context(), "other"); overlap(err) != "ErrClosed" {
			t.Errorf("TryAcquire after Close = %v, want ErrClosed", err)
		}
		if after := b.calls(); after != before || since(start) != 0 {
			t.Errorf("Acquire after Close made %d calls and took %v", after-before, since(start))
		}
	})
}

func TestF095OneFailingReleaseKeepsNoOther(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		var leases []*quorum.Lease
		for i := range 10 {
			leases = append(leases, must(t, l, fmt.Sprint("lock ", i)))
		}
		b.settle()
		for _, sp := range b.spoil {
			sp.Set(storetest.On(func(c storetest.Call) bool {
				return c.Verb == storetest.VerbRelease && c.Request.Key == "lock 3"
			}, storetest.Fail(errDown)))
		}
		err := l.Close(t.Context())
		if err == nil || !strings.Contains(err.Error(), `"lock 3"`) || strings.Contains(err.Error(), `"lock 4"`) || !errors.Is(err, errDown) {
			t.Errorf("Close = %v, want the store's error and lock 3 alone", err)
		}
		for i, lease := range leases {
			lost := (*quorum.LostError)(nil)
			if !errors.As(lease.Err(), &lost) || lost.Reason != quorum.LostClosed || lease.Context().Err() == nil {
				t.Errorf("lease %d says %v, want lost because of Close", i, lease.Err())
			}
			if held := b.held(lease.Key()); (held == 3) != (i == 3) || held != 0 && i != 3 {
				t.Errorf("lock %d is held by %d stores", i, held)
			}
		}
		before := b.calls(storetest.VerbExtend, storetest.VerbAcquire)
		time.Sleep(time.Minute)
		if after := b.calls(storetest.VerbExtend, storetest.VerbAcquire); after != before {
			t.Errorf("%d renewals after Close", after-before)
		}
	})
}

func TestCloseFinishesRollBacks(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.DropReply(nil)),
				storetest.On(storetest.Verbs(storetest.VerbRelease), storetest.Fail(nil)))
		}
		if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Fatal(err)
		}
		if b.held("k") < 2 {
			t.Fatal("nothing was left to roll back")
		}
		start := time.Now()
		time.AfterFunc(2*time.Second, func() { healed(b) })
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		within(t, "Close", since(start), 2*time.Second, 3*time.Second)
		b.checkEmpty("k")
	})
	t.Run("until the release limit", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker(quorum.ReleaseLimit(3 * time.Second))
			must(t, l, "k")
			b.settle()
			b.spoilAll(storetest.VerbRelease, storetest.Hang())
			start := time.Now()
			err := l.Close(t.Context())
			within(t, "Close", since(start), 3*time.Second, 4*time.Second)
			if !errors.Is(err, quorum.ErrNoQuorum) || !strings.Contains(err.Error(), `"k"`) {
				t.Errorf("Close = %v, want the lock that stands", err)
			}
			if n := len(b.seen(quorum.EventReleaseFail)); n != 3 {
				t.Errorf("%d events of stores that were not released, want 3", n)
			}
		})
	})
}

func TestCloseTellsAStoreThatHangsFromAnOutage(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.ReleaseLimit(3 * time.Second))
		must(t, l, "k")
		b.settle()
		b.spoil[0].Set(storetest.On(storetest.Verbs(storetest.VerbRelease), storetest.Hang()))
		err := l.Close(t.Context())
		want := `quorum: close "k": not every store could be told that it is free (2 granted, 2 needed: a unknown`
		if errors.Is(err, quorum.ErrNoQuorum) || !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("Close = %v, want %s ...", err, want)
		}
	})
}

func TestCloseWithAnEndedContext(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		lease := must(t, l, "k")
		b.settle()
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Latency(100 * time.Millisecond)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		start := time.Now()
		err := l.Close(ctx)
		within(t, "Close", since(start), 0, 0)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), `"k"`) || lease.Err() == nil {
			t.Errorf("Close = %v, want the context's error and the lock; the lease says %v", err, lease.Err())
		}
		if err := l.Close(t.Context()); err != nil {
			t.Errorf("Close again, with time: %v", err)
		}
		within(t, "both", since(start), 100*time.Millisecond, 200*time.Millisecond)
		b.checkEmpty("k")
	})
}

func TestReleaseAfterClose(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		lease, released := must(t, l, "k"), must(t, l, "released before")
		if err := released.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := l.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		}
		b.checkEmpty("k")
		for range 2 {
			if err := lease.Release(t.Context()); !errors.Is(err, quorum.ErrLost) {
				t.Errorf("Release after Close = %v, want that Close took it", err)
			}
			if err := lease.Extend(t.Context(), time.Minute); !errors.Is(err, quorum.ErrLost) {
				t.Errorf("Extend after Close = %v, want ErrLost", err)
			}
		}
		if err := released.Release(t.Context()); err != nil {
			t.Errorf("Release again of what was released before Close: %v", err)
		}
	})
}

// owned is a store that Open made.
type owned struct {
	*memstore.Store
	closed *atomic.Int32
}

func (o owned) Close() error { o.closed.Add(1); return nil }

func TestCloseClosesOwnedStoresOnce(t *testing.T) {
	var closed atomic.Int32
	set, err := quorum.Open(t.Context(), []string{"x://a", "x://b", "x://c"}, quorum.Opener{
		Schemes: []string{"x"},
		Open: func(_ context.Context, u *url.URL) (quorum.Store, error) {
			return owned{memstore.New(u.Query().Get("name")), &closed}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	must(t, l, "k")
	var wait sync.WaitGroup
	for range 5 {
		wait.Go(func() {
			if err := l.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if n := closed.Load(); n != 3 {
		t.Errorf("3 stores were closed %d times", n)
	}
}

func TestF109HundredGoroutinesOneHolder(t *testing.T) {
	// F137: released by another goroutine than took it. On real time and, under
	// the race detector, in real parallel.
	l, err := quorum.New(mustCombine(t, quorum.Consensus(), named("a", "b", "c")...))
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		barrier, leases := make(chan struct{}), make(chan *quorum.Lease, 100)
		var wait sync.WaitGroup
		for range cap(leases) {
			wait.Go(func() {
				<-barrier
				lease, err := l.TryAcquire(t.Context(), "k")
				if (lease == nil) != errors.Is(err, quorum.ErrHeld) {
					t.Errorf("%v, %v, want a lease or ErrHeld", lease, err)
				}
				if lease != nil {
					leases <- lease
				}
			})
		}
		close(barrier)
		wait.Wait()
		close(leases)
		if len(leases) != 1 {
			t.Fatalf("%d of 100 got the lock, want 1", len(leases))
		}
		for lease := range leases {
			for range 10 {
				wait.Go(func() {
					if err := lease.Release(t.Context()); err != nil {
						t.Errorf("Release by another goroutine: %v", err)
					}
				})
			}
			wait.Wait()
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestF064LockRightAfterTheLastHasAHeartbeat(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(600 * time.Millisecond))
		var wait sync.WaitGroup
		for i := range 200 {
			wait.Go(func() {
				key := fmt.Sprint("k", i)
				if err := must(t, l, key).Release(t.Context()); err != nil {
					t.Error(err)
				}
				lease := must(t, l, key)
				time.Sleep(2 * time.Second)
				if lease.Err() != nil || b.held(key) < 2 {
					t.Errorf("lock %d after 2 s: %v, held by %d stores", i, lease.Err(), b.held(key))
				}
			})
		}
		wait.Wait()
	})
}

func TestF059CancelledAcquireLeavesNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(300 * time.Millisecond))
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Do(func() { time.Sleep(rand.N(5 * time.Millisecond)) })))
		}
		won := 0
		for range 500 {
			ctx, cancel := context.WithTimeout(t.Context(), rand.N(20*time.Millisecond))
			lease, err := l.Acquire(ctx, "k")
			cancel()
			if err == nil {
				won++
				if err := lease.Release(ctx); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(500 * time.Millisecond)
			before := b.calls()
			b.checkEmpty("k")
			time.Sleep(200 * time.Millisecond)
			if after := b.calls(); after != before || t.Failed() {
				t.Fatalf("%d calls by an acquisition that is over", after-before)
			}
		}
		if won < 50 || won > 450 {
			t.Errorf("%d of 500 won: the cancels did not fall amid the acquisitions", won)
		}
	})
}

func TestF122GoroutinesEnd(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Latency(100 * time.Millisecond)))
		}
		b.rival("held", time.Minute, 0, 1, 2)
		base := goroutines()
		var wait sync.WaitGroup
		for i := range 200 {
			wait.Go(func() {
				if lease, err := l.Acquire(t.Context(), fmt.Sprint("k", i)); err != nil || lease.Release(t.Context()) != nil {
					t.Errorf("acquire and release: %v", err)
				}
			})
			wait.Go(func() { _, _ = l.TryAcquire(t.Context(), "held") })
			wait.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*time.Millisecond)
				defer cancel()
				if lease, err := l.Acquire(ctx, fmt.Sprint("c", i)); err == nil {
					_ = lease.Release(ctx)
				}
			})
		}
		wait.Wait()
		time.Sleep(2 * time.Second)
		if n := goroutines(); n > base+3 {
			t.Errorf("%d goroutines, %d before", n, base)
		}
	})
}

// goroutines counts by their stacks: runtime.NumGoroutine counts some that have
// ended, while the runtime moves them from one of its lists to another.
func goroutines() int {
	stacks := make([]byte, 4<<20)
	return strings.Count(string(stacks[:runtime.Stack(stacks, true)]), "\ngoroutine ") + 1
}

// blank is a store that grants everything and remembers nothing.
type blank struct{ token atomic.Int64 }

func (*blank) Name() string          { return "blank" }
func (*blank) Limits() quorum.Limits { return quorum.Limits{} }
func (s *blank) Acquire(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	return quorum.Grant{Token: s.token.Add(1), TTL: r.TTL}, nil
}
func (s *blank) Extend(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	return quorum.Grant{Token: r.Floor, TTL: r.TTL}, nil
}
func (*blank) Release(context.Context, quorum.Request) error { return nil }

func TestF124KeysLeaveNothingInTheLocker(t *testing.T) {
	l, err := quorum.New(&blank{}, quorum.WithClock(clock.Go()))
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 20_000 {
		if err := must(t, l, fmt.Sprint("key ", i)).Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if after := heap(); after > before+1<<20 {
		t.Errorf("20,000 keys left %d bytes", after-before)
	}
}

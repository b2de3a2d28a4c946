package quorum_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// queue lets n goroutines wait for a key, one after another, and calls got with
// the number of each that has it, until all have had it.
func (b *bed) queue(l *quorum.Locker, n int, got func(i int, lease *quorum.Lease, err error), options ...quorum.Option) *sync.WaitGroup {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			lease, err := l.Acquire(b.t.Context(), "k", options...)
			got(i, lease, err)
		})
		synctest.Wait()
	}
	return &all
}

func TestR12WaiterActsOnTheRelease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		holder, waiter := b.locker(), b.locker()
		lease := must(t, holder, "k")
		var at time.Duration
		start := time.Now()
		all := b.queue(waiter, 1, func(_ int, _ *quorum.Lease, err error) {
			if at = since(start); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(8765 * time.Millisecond) // by now its pause is a second
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		within(t, "the wait", at, 8765*time.Millisecond, 8815*time.Millisecond)
	})
}

func TestR12LostNotificationCostsOnePause(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbWatch), storetest.Fail(errors.New("no watches today"))))
		}
		holder, waiter := b.locker(), b.locker()
		lease := must(t, holder, "k")
		var at time.Duration
		start := time.Now()
		all := b.queue(waiter, 1, func(int, *quorum.Lease, error) { at = since(start) })
		time.Sleep(20 * time.Second)
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		within(t, "the wait", at, 20*time.Second, 21*time.Second)
		if n := b.calls(storetest.VerbWatch); n > 2*3*10 { // of the holder's locker and the waiter's
			t.Errorf("%d watches were begun in 20 s", n)
		}
	})
}

// Of a thousand that wait in a process one asks, they share one watch a store,
// and they are served in the order of their asking.
func TestR12OneOfAThousandAsks(t *testing.T) {
	const n = 1000
	inBubble(t, 3, func(t *testing.T, b *bed) {
		holder, waiter := b.locker(), b.locker()
		lease := must(t, holder, "k")
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Latency(time.Millisecond)))
		}
		var order []int
		all := b.queue(waiter, n, func(i int, lease *quorum.Lease, err error) {
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, i)
			_ = lease.Release(t.Context())
		})
		time.Sleep(900 * time.Millisecond) // the holder watches after a second
		if calls := b.calls(storetest.VerbWatch); calls != 3 {
			t.Errorf("%d watches for %d waiters, want one a store", calls, n)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		if len(order) != n || !slices.IsSorted(order) {
			t.Errorf("%d were served, in order: %v", len(order), slices.IsSorted(order))
		}
		b.settle()
		for i, sp := range b.spoil {
			if most := mostAtOnce(sp.Log(storetest.Kinds(quorum.KindNew))); most > 1 {
				t.Errorf("store %d had %d requests of one process at once", i, most)
			}
		}
		if calls := b.calls(storetest.VerbAcquire); calls > 5*n {
			t.Errorf("%d requests for %d acquisitions", calls, n)
		}
		b.checkEmpty("k")
	})
}

// mostAtOnce is how many of the calls were under way at one time. Calls of a
// background repair count: they are of a lease that is held, and so of none that
// waits.
func mostAtOnce(log []storetest.Call) (most int) {
	for _, c := range log {
		n := 0
		for _, o := range log {
			if !o.At.After(c.At) && o.At.Add(o.Took).After(c.At) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func TestR12WaitersOfOneProcessFail(t *testing.T) {
	for _, c := range []struct {
		name   string
		spoil  storetest.Rule
		option quorum.Option
		want   []error
		not    error
		within time.Duration
	}{
		{"held", storetest.Rule{}, quorum.Wait(3 * time.Second), []error{quorum.ErrHeld, context.DeadlineExceeded}, quorum.ErrNoQuorum, 3 * time.Second},
		{"outage", storetest.On(nil, storetest.Fail(errors.New("down"))), quorum.Wait(3 * time.Second),
			[]error{quorum.ErrNoQuorum, context.DeadlineExceeded}, quorum.ErrHeld, 3 * time.Second},
		{"outage that it does not wait through", storetest.On(nil, storetest.Fail(errors.New("down"))), quorum.FailOnOutage(),
			[]error{quorum.ErrNoQuorum}, quorum.ErrHeld, time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				b.rival("k", time.Minute, 0, 1, 2)
				if c.spoil.Faults != nil {
					for _, sp := range b.spoil {
						sp.Set(c.spoil)
					}
				}
				l := b.locker()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var first sync.WaitGroup
				first.Go(func() { _, _ = l.Acquire(ctx, "k") }) // it asks for both
				synctest.Wait()
				start := time.Now()
				_, err := l.Acquire(t.Context(), "k", c.option)
				within(t, "the wait", since(start), 0, c.within+50*time.Millisecond)
				for _, want := range c.want {
					if !errors.Is(err, want) {
						t.Errorf("the second waiter got %v, want a match of %v", err, want)
					}
				}
				if errors.Is(err, c.not) {
					t.Errorf("the second waiter got %v, which matches %v", err, c.not)
				}
				cancel()
				first.Wait()
			})
		})
	}
}

func TestR12CloseEndsWaitersAndWatches(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		b.rival("k", time.Minute, 0, 1, 2)
		l := b.locker()
		all := b.queue(l, 5, func(i int, _ *quorum.Lease, err error) {
			if !errors.Is(err, quorum.ErrClosed) {
				t.Errorf("waiter %d got %v, want ErrClosed", i, err)
			}
		})
		time.Sleep(time.Second)
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		for _, sp := range b.spoil {
			for _, c := range sp.Log(storetest.Verbs(storetest.VerbWatch)) {
				if !c.Done {
					t.Error("a watch goes on after Close")
				}
			}
		}
	})
}

// Readers do not wait for one another, before a writer or after it.
func TestR12ReadersGoTogether(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		writer, l := b.locker(), b.locker()
		for _, sp := range b.spoil {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Latency(10*time.Millisecond)))
		}
		for _, after := range []bool{false, true} {
			var held *quorum.Lease
			if after {
				held = must(t, writer, "k")
			}
			var mu sync.Mutex
			var leases []*quorum.Lease
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					lease, err := l.Acquire(t.Context(), "k", quorum.Shared())
					if err != nil {
						t.Error(err)
					}
					mu.Lock()
					defer mu.Unlock()
					leases = append(leases, lease)
				})
			}
			time.Sleep(100 * time.Millisecond)
			start := time.Now()
			if held != nil {
				_ = held.Release(t.Context())
			}
			all.Wait()
			within(t, "the wait of 50 readers", since(start), 0, 100*time.Millisecond)
			for _, lease := range leases {
				_ = lease.Release(t.Context())
			}
			b.settle()
		}
	})
}

// A holder that watches learns at once that its votes are gone.
func TestR24HolderLearnsOfATakeOverAtOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(30 * time.Second))
		lease := must(t, l, "k")
		time.Sleep(2 * time.Second)
		force := func(i int) {
			r := b.request("k")
			r.Kind, r.Owner.ID[0], r.Label = quorum.KindForce, 9, "an operator"
			if _, err := b.memory[i].Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		force(0)
		time.Sleep(100 * time.Millisecond)
		if err := lease.Err(); err != nil {
			t.Fatalf("one vote of three was taken: %v, want held", err)
		}
		if votes := lease.Votes(); votes[0].Outcome == quorum.OutcomeGranted {
			t.Errorf("100 ms later the lease still counts on it: %+v", votes[0])
		}
		time.Sleep(time.Second)
		start := time.Now()
		force(1)
		<-lease.Context().Done()
		within(t, "the news", since(start), 0, 100*time.Millisecond)
		if lost := (*quorum.LostError)(nil); !errors.As(lease.Err(), &lost) || lost.Reason != quorum.LostForced {
			t.Errorf("lost: %v, want forced", lease.Err())
		}
		if calls := b.calls(storetest.VerbExtend); calls > 8 {
			t.Errorf("%d extends", calls)
		}
	})
}

// An eager client that takes the lock again at once does not keep a polite one
// out.
func TestF074EagerClientDoesNotStarveAnother(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		eager, polite := b.locker(), b.locker()
		for _, sp := range b.spoil {
			sp.Set(storetest.On(nil, storetest.Latency(time.Millisecond)))
		}
		ctx, cancel := context.WithCancel(t.Context())
		var loop sync.WaitGroup
		loop.Go(func() {
			for ctx.Err() == nil {
				lease, err := eager.Acquire(ctx, "k")
				if err != nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
				_ = lease.Release(ctx)
			}
		})
		for range 20 {
			time.Sleep(3 * time.Millisecond)
			start := time.Now()
			lease := must(t, polite, "k")
			within(t, "the polite one's wait", since(start), 0, 5*time.Second)
			_ = lease.Release(t.Context())
		}
		cancel()
		loop.Wait()
	})
}

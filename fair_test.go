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

// far has every call take a millisecond each way.
func (b *bed) far() {
	for _, sp := range b.spoil {
		sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire, storetest.VerbExtend, storetest.VerbRelease), storetest.Latency(2*time.Millisecond)))
	}
}

// Sixteen processes that take a lock again and again have it in turn, whatever
// the order in which stores are asked.
func TestR13SixteenTakeTurns(t *testing.T) {
	const workers, hold = 16, time.Millisecond
	for _, c := range []struct {
		order  quorum.Order
		rounds int
		calls  float64 // of a store for one acquisition: at most
	}{{quorum.InOrder, 200, 3.2}, {quorum.FirstThenRest, 40, 3.2}, {quorum.AllAtOnce, 40, 4.2}} {
		t.Run(c.order.String(), func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				b.far()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var mu sync.Mutex
				var longest time.Duration
				total, mine := 0, make([]int, workers)
				var all sync.WaitGroup
				start := time.Now()
				for i := range workers {
					l := b.locker(quorum.AskOrder(c.order))
					all.Go(func() {
						for {
							asked := time.Now()
							lease, err := l.Acquire(ctx, "k")
							if err != nil {
								return
							}
							mu.Lock()
							longest = max(longest, since(asked))
							mine[i]++
							if total++; total == workers*c.rounds {
								cancel()
							}
							mu.Unlock()
							time.Sleep(hold)
							_ = lease.Release(t.Context())
						}
					})
				}
				all.Wait()
				cycle := since(start) / time.Duration(total)
				calls := float64(b.calls(storetest.VerbAcquire, storetest.VerbExtend, storetest.VerbRelease)) / float64(3*total)
				t.Logf("a cycle took %v, the longest wait %v, an acquisition %.1f calls a store", cycle, longest, calls)
				if calls > c.calls {
					t.Errorf("an acquisition took %.1f calls a store, want at most %.1f", calls, c.calls)
				}
				if most := cycle * workers * 13 / 10; longest > most {
					t.Errorf("the longest wait took %v, want at most %v", longest, most)
				}
				if few, many := slices.Min(mine), slices.Max(mine); float64(few)/float64(many) < 0.95 {
					t.Errorf("the fewest had it %d times, the most %d times", few, many)
				}
			})
		})
	}
}

// Processes that ask one after another are served in that order.
func TestR13ProcessesAreServedInOrder(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		b.far()
		held := must(t, b.locker(), "k")
		var order []int
		var all sync.WaitGroup
		for i := range 20 {
			l := b.locker()
			all.Go(func() {
				lease, err := l.Acquire(t.Context(), "k")
				if err != nil {
					t.Error(err)
					return
				}
				order = append(order, i)
				_ = lease.Release(t.Context())
			})
			time.Sleep(10 * time.Millisecond)
		}
		_ = held.Release(t.Context())
		all.Wait()
		if len(order) != 20 || !slices.IsSorted(order) {
			t.Errorf("they were served as %v", order)
		}
	})
}

// Readers come every 10 ms and hold for up to 100 ms, and yet a writer gets in
// within twice that, in a process of its own or in theirs.
func TestR33WriterIsNotStarved(t *testing.T) {
	const longest = 100 * time.Millisecond
	for _, c := range []struct {
		name    string
		lockers int
	}{{"all in one process", 1}, {"in four processes", 4}} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				b.far()
				lockers := make([]*quorum.Locker, c.lockers)
				for i := range lockers {
					lockers[i] = b.locker()
				}
				var all sync.WaitGroup
				all.Go(func() {
					for i := range 1000 {
						all.Go(func() {
							lease, err := lockers[i%c.lockers].Acquire(t.Context(), "k", quorum.Shared())
							if err != nil {
								t.Error(err)
								return
							}
							time.Sleep(longest/2 + longest/2*time.Duration(i%7)/6)
							_ = lease.Release(t.Context())
						})
						time.Sleep(10 * time.Millisecond)
					}
				})
				for range 8 {
					time.Sleep(time.Second)
					start := time.Now()
					lease := must(t, lockers[0], "k")
					within(t, "the writer's wait", since(start), 0, 2*longest)
					time.Sleep(5 * time.Millisecond)
					_ = lease.Release(t.Context())
				}
				all.Wait()
				b.settle()
				b.checkEmpty("k")
			})
		})
	}
}

// A process that waits asks each store one thing at a time, however many wait
// in it, and leaves nothing in any queue.
func TestR12ProcessStandsInLineOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		holder, waiter, late := b.locker(), b.locker(), b.locker()
		held := must(t, holder, "k")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() { _, _ = waiter.Acquire(ctx, "k") })
		}
		synctest.Wait()
		time.Sleep(100 * time.Millisecond)
		for i := range b.memory {
			if n := b.queued(i, "k"); n != 1 {
				t.Errorf("%d stand in line in store %d for one process", n, i)
			}
		}
		cancel()
		all.Wait()
		b.settle()
		for i := range b.memory {
			if n := b.queued(i, "k"); n != 0 {
				t.Errorf("%d are left in line in store %d", n, i)
			}
		}
		_ = held.Release(t.Context())
		_ = must(t, late, "k").Release(t.Context())
	})
}

// queued counts who stands in line for a key in store i, as the last in line sees
// it.
func (b *bed) queued(i int, key string) int {
	r := b.request(key)
	r.Owner.ID[0], r.Wait, r.Ticket, r.Keep, r.Claim = 200, quorum.WaitQueue, time.Now().Add(time.Hour).UnixMicro(), time.Second, time.Second
	_, err := b.memory[i].Acquire(context.Background(), r)
	refused := (*quorum.RefusedError)(nil)
	if !errors.As(err, &refused) {
		b.t.Fatalf("store %d answers %v to who asks for a place in line", i, err)
	}
	if err := b.memory[i].Release(context.Background(), r); err != nil {
		b.t.Fatal(err)
	}
	return refused.Rank
}

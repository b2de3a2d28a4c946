package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// Two clients want the same keys in opposite orders, again and again.
func TestR07AcquireAllNeverDeadlocks(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		var inside atomic.Int32
		var all sync.WaitGroup
		for _, keys := range [][]string{{"x", "y", "z"}, {"z", "y", "x", "y"}} {
			locks := b.locker()
			all.Go(func() {
				for range 500 {
					g, err := locks.AcquireAll(t.Context(), keys)
					if err != nil {
						t.Error(err)
						return
					}
					if n := inside.Add(1); n != 1 || len(g.Leases()) != 3 || g.Err() != nil {
						t.Errorf("%d inside with %d leases, %v", n, len(g.Leases()), g.Err())
					}
					for _, key := range keys {
						if err := quorum.Held(g.Context(), key); err != nil {
							t.Error(err)
						}
					}
					inside.Add(-1)
					if err := g.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for _, key := range []string{"x", "y", "z"} {
			b.checkEmpty(key)
		}
	})
}

func TestR07AcquireAllOrNone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		other := b.take(locks, "y")
		if g, err := locks.AcquireAll(t.Context(), []string{"y", "x"}, quorum.Wait(0)); !errors.Is(err, quorum.ErrHeld) || g != nil {
			t.Errorf("with one key taken: %v, %v, want ErrHeld", g, err)
		}
		b.checkEmpty("x")
		if _, err := locks.AcquireAll(t.Context(), nil); !errors.Is(err, quorum.ErrInvalidKey) {
			t.Errorf("without keys: %v, want ErrInvalidKey", err)
		}
		if err := other.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		g, err := locks.AcquireAll(t.Context(), []string{"y", "x"})
		if err != nil {
			t.Fatal(err)
		}
		if err := g.Leases()[0].Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-g.Context().Done() // one is enough
		if err := g.Err(); !errors.Is(err, quorum.ErrReleased) {
			t.Errorf("with one given back: %v, want ErrReleased", err)
		}
		if err := g.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestR34SlotsAtMostN(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		const n = 3
		var inside, most atomic.Int32
		var all sync.WaitGroup
		for range 8 {
			slots, err := b.locker().Slots("pool", n)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				for range 5 {
					slot, err := slots.Acquire(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					now := inside.Add(1)
					most.Store(max(most.Load(), now))
					if now > n || slot.Number() < 1 || slot.Number() > n || slot.Token() == 0 {
						t.Errorf("slot %d with token %d, %d inside", slot.Number(), slot.Token(), now)
					}
					time.Sleep(200 * time.Millisecond)
					inside.Add(-1)
					if err := slot.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if most.Load() != n {
			t.Errorf("at most %d were inside at once, want %d", most.Load(), n)
		}
		for _, key := range []string{"pool#slots", "pool#1", "pool#2", "pool#3"} {
			b.checkEmpty(key)
		}
	})
}

func TestR34SlotsOfAnotherNumberMismatch(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		three, err := locks.Slots("pool", 3)
		if err != nil {
			t.Fatal(err)
		}
		five, err := locks.Slots("pool", 5)
		if err != nil {
			t.Fatal(err)
		}
		slot, err := three.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		_, err = five.TryAcquire(t.Context())
		if text := fmt.Sprint(err); !errors.Is(err, quorum.ErrMismatch) || !strings.Contains(text, "5 slots here and 3 with") || strings.Contains(text, "serves another set") {
			t.Errorf("five slots beside three: %v, want ErrMismatch that says so", err)
		}
		if err := slot.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := five.TryAcquire(t.Context()); err != nil {
			t.Errorf("five slots after three: %v", err)
		}
		if _, err := locks.Slots("pool", 0); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("no slots: %v, want ErrInvalidOption", err)
		}
	})
}

// Each term is nested: it begins with the news of the leader, and ends before
// anybody else's begins.
func TestR35ElectTermsAreNested(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		var leading atomic.Int32
		var mu sync.Mutex
		var told []string
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range 3 {
			locks := b.locker(quorum.Label(fmt.Sprint("candidate ", i)))
			all.Go(func() {
				err := locks.Elect(ctx, "leader", func(ctx context.Context, lease *quorum.Lease) error {
					if n := leading.Add(1); n != 1 || lease.Err() != nil {
						t.Errorf("%d lead at once, %v", n, lease.Err())
					}
					defer leading.Add(-1)
					<-ctx.Done()
					return nil
				}, quorum.MaxHold(time.Minute), quorum.OnNewLeader(func(label string) {
					mu.Lock()
					defer mu.Unlock()
					told = append(told, label)
				}))
				if !errors.Is(err, context.Canceled) {
					t.Errorf("candidate %d: %v", i, err)
				}
			})
		}
		time.Sleep(5 * time.Minute)
		cancel()
		all.Wait()
		synctest.Wait()
		terms := len(b.seen(quorum.EventAcquired))
		if terms < 3 {
			t.Errorf("%d terms in five minutes, want one a minute", terms)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(told) < terms {
			t.Errorf("%d leaders told in %d terms", len(told), terms)
		}
	})
}

func TestR35ElectEndsItsTermOnLossAndStandsAgain(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		terms := 0
		resigned := errors.New("resigned")
		err := locks.Elect(t.Context(), "leader", func(ctx context.Context, lease *quorum.Lease) error {
			if terms++; terms == 2 {
				return resigned
			}
			for _, s := range b.spoil {
				s.Set(storetest.Always(storetest.Fail(nil)))
			}
			<-ctx.Done()
			if cause := context.Cause(ctx); !errors.Is(cause, quorum.ErrLost) {
				t.Errorf("the term ended with %v, want ErrLost", cause)
			}
			for _, s := range b.spoil {
				s.Set()
			}
			return nil
		})
		if err != resigned && !errors.Is(err, resigned) || terms != 2 {
			t.Errorf("after %d terms: %v, want 2 and the second's own error", terms, err)
		}
	})
}

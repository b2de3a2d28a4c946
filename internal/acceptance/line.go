//go:build unix

package acceptance

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Line has waiters stand in the queues of stores, some in processes that die.
type Line struct {
	Dead int // who are killed, at the head of the line
	DSNs []string
	// Open opens the set in each process.
	Open func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error)
	// Queued says how many stand in the queue of "job" in one of the stores.
	Queued func() int
}

// lineLimit is how long a waiter may wait behind the dead: a holder that died
// would have the name for three times as long, and a waiter its place for six.
const lineLimit = 10 * time.Second

// Run kills those at the head of a line by kill -9. Those behind them come in,
// in their order, and nothing stays in the queue. Like [Soak.Run] it must be all
// that its test does but for starting servers.
func (l Line) Run(t *testing.T) {
	if Worker() {
		_, _ = l.locker(t).Acquire(t.Context(), "job") // until it is killed
		return
	}
	first := l.locker(t)
	Poll(t, time.Minute, "the set to be declared new", func() bool { return first.Init(t.Context()) == nil })
	holder := Acquire(t, first, "job")
	queued := func(n int) {
		t.Helper()
		Poll(t, time.Minute, "a place in the queue", func() bool { return l.Queued() == n })
	}
	dead := l.strangers(t, queued)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var mu sync.Mutex
	var order []int
	for i := range 2 {
		next := l.locker(t)
		all.Go(func() {
			lease, err := next.Acquire(ctx, "job")
			if err != nil {
				t.Errorf("behind dead waiters: %v", err)
				return
			}
			if lease.Previous() != quorum.PreviousReleased {
				t.Errorf("waiter %d: the holder before %v", i, lease.Previous())
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			_ = lease.Release(context.WithoutCancel(ctx))
		})
		queued(l.Dead + i + 1)
	}
	for _, cmd := range dead {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	limit := time.AfterFunc(lineLimit, cancel)
	defer limit.Stop()
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if !slices.Equal(order, []int{0, 1}) {
		t.Errorf("the living came in as %v", order)
	}
	queued(0)
}

func (l Line) locker(t *testing.T) *quorum.Locker {
	t.Helper()
	dsns := l.DSNs
	if Worker() {
		dsns = strings.Fields(os.Getenv(soakDSNs))
	}
	set, err := l.Open(t.Context(), dsns)
	if err != nil {
		t.Fatal(err)
	}
	return Locker(t, set, quorum.TTL(3*lineLimit), quorum.MaxTTL(3*lineLimit))
}

// strangers starts the processes that will die, one behind the other.
func (l Line) strangers(t *testing.T, queued func(n int)) (all []*exec.Cmd) {
	t.Helper()
	for i := range l.Dead {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), soakDSNs+"="+strings.Join(l.DSNs, " "))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, cmd)
		queued(i + 1)
	}
	return all
}

// Ear hears for a store's watches, and can be deaf.
type Ear struct {
	quorum.Store
	Deaf  atomic.Bool
	hears atomic.Bool
}

// Unwrap lets the abilities of the store beneath be found.
func (e *Ear) Unwrap() quorum.Store { return e.Store }

// Watch implements [quorum.Watcher].
func (e *Ear) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	w, ok := quorum.As[quorum.Watcher](e.Store)
	if !ok {
		return errors.ErrUnsupported
	}
	return w.Watch(ctx, r, func(w quorum.Wake) {
		e.hears.Store(true)
		if !e.Deaf.Load() {
			tell(w)
		}
	})
}

// LostWake has a waiter that hears by ear, and what would wake it lost by lose.
// It gets its turn nevertheless, by asking under its watch: no later than the
// vote of the holder would have ended that it saw last.
func LostWake(t *testing.T, holder, waiter *quorum.Locker, ear *Ear, queued func() int, lose func()) {
	t.Helper()
	const ttl = 3 * time.Second
	if err := holder.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := Acquire(t, holder, "job", quorum.TTL(ttl))
	got := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		lease, err := waiter.Acquire(ctx, "job")
		if err == nil {
			err = lease.Release(context.WithoutCancel(ctx))
		}
		got <- err
	}()
	Poll(t, time.Minute, "a waiter that listens", func() bool { return ear.hears.Load() && queued() == 1 })
	lose()
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	start := time.Now()
	select {
	case err := <-got:
		if err != nil {
			t.Error(err)
		}
		t.Logf("had its turn %v after the release", time.Since(start))
	case <-time.After(ttl + lineLimit):
		t.Errorf("no turn within %v of a release that was not heard of", ttl+lineLimit)
	}
	cancel()
	Poll(t, time.Minute, "nobody in the queue", func() bool { return queued() == 0 })
}

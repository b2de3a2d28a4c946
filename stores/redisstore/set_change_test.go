package redisstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// TestR48NodesReplacedOneByOneUnderLoad replaces three real nodes by three
// others, one after the other, while clients take one lock all the while. They
// move when they are told, and look for other settings at a mismatch. The operator of each
// change is killed a few times at a moment of chance; one node is dead before it
// is replaced.
func TestR48NodesReplacedOneByOneUnderLoad(t *testing.T) {
	var nodes []*testserver.RedisNode
	for range 6 {
		nodes = append(nodes, testserver.Redis(t))
	}
	w := &replacing{t: t, by: map[int]int{}}
	random := rand.New(rand.NewPCG(seed(t), 48))
	// Who operates is a process of its own, with clients of its own.
	sets := settingsOf(t, nodes)
	if err := sets[0].Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop, end := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		all := settingsOf(t, nodes)
		clients.Go(func() { w.client(stop, all) })
	}
	defer clients.Wait()
	defer end()
	w.works(0)
	for i := range 3 {
		if i == 1 {
			nodes[1].Stop()
		}
		from, to := sets[2*i], sets[2*i+2]
		for range 3 { // killed
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.IntN(600))*time.Millisecond)
			_, _ = quorum.Change(ctx, from, to, quorum.ChangeDone)
			cancel()
		}
		for _, stage := range []quorum.ChangeStage{quorum.ChangeJoining, quorum.ChangeOpened, quorum.ChangeDone} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			report, err := quorum.Change(ctx, from, to, stage)
			cancel()
			if err != nil {
				t.Fatalf("change %d to %v: %v (%+v)", i, stage, err, report)
			}
			use := 2*i + 2
			if stage == quorum.ChangeJoining && report.Stage < quorum.ChangeOpened { // those that were killed may have come further
				use = 2*i + 1
			}
			w.told.Store(int32(use))
			w.works(use)
		}
	}
	end()
	clients.Wait()
	if _, err := sets[0].TryAcquire(t.Context(), "job"); !errors.Is(err, quorum.ErrMismatch) && !errors.Is(err, quorum.ErrNoQuorum) {
		t.Errorf("a client of the first set got %v, want ErrMismatch or ErrNoQuorum", err)
	}
	cycle(t, sets[6], "job")
	t.Logf("acquisitions by set, even, and by clients in between, odd: %v; last token %d", w.by, w.last)
}

// settingsOf makes what a process may be told to use, in turn: three of six
// nodes, those in between, three others, and so on.
func settingsOf(t *testing.T, nodes []*testserver.RedisNode) []*quorum.Locker {
	t.Helper()
	var stores []quorum.Store
	for i, n := range nodes {
		st, err := redisstore.New("node"+strconv.Itoa(i), client(t, n.Addr))
		if err != nil {
			t.Fatal(err)
		}
		stores = append(stores, st)
	}
	options := []quorum.Option{quorum.TTL(1500 * time.Millisecond), quorum.MaxTTL(2 * time.Second), quorum.CallLimit(300 * time.Millisecond)}
	var all []*quorum.Locker
	keep := func(l *quorum.Locker, err error) *quorum.Locker {
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			_ = l.Close(ctx)
		})
		return l
	}
	for i := range 4 {
		set, err := quorum.Combine(quorum.Consensus(), stores[i:i+3]...)
		if err != nil {
			t.Fatal(err)
		}
		next := keep(quorum.New(set, options...))
		if i > 0 {
			all = append(all, keep(quorum.Between(all[2*i-2], next)))
		}
		all = append(all, next)
	}
	return all
}

// replacing is what the clients see of one another.
type replacing struct {
	t      *testing.T
	told   atomic.Int32 // which settings clients are to use
	mu     sync.Mutex
	holder *quorum.Lease
	last   int64
	by     map[int]int
}

func (w *replacing) client(ctx context.Context, settings []*quorum.Locker) {
	for at, told := 0, int32(0); ctx.Err() == nil; {
		if now := w.told.Load(); now != told {
			at, told = int(now), now
		}
		lease, err := settings[at].Acquire(ctx, "job", quorum.Wait(time.Second))
		if errors.Is(err, quorum.ErrMismatch) {
			at = (at + 1) % len(settings) // it looks what it is to use
		}
		if err != nil {
			continue
		}
		w.enter(lease, at)
		hold, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		<-hold.Done()
		cancel()
		w.leave(lease)
		_ = lease.Release(ctx)
	}
}

func (w *replacing) enter(lease *quorum.Lease, at int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder != nil && w.holder.Remaining() > 0 && lease.Remaining() > 0 {
		w.t.Errorf("two holders, with tokens %d and %d", w.holder.Token(), lease.Token())
	}
	if lease.Token() <= w.last {
		w.t.Errorf("token %d after %d", lease.Token(), w.last)
	}
	w.holder, w.last = lease, lease.Token()
	w.by[at]++
}

func (w *replacing) leave(lease *quorum.Lease) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.holder == lease {
		w.holder = nil
	}
}

// works waits until clients with the settings take the lock again.
func (w *replacing) works(at int) {
	w.t.Helper()
	count := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.by[at]
	}
	before := count()
	acceptance.Poll(w.t, 30*time.Second, "clients with settings "+strconv.Itoa(at)+" take the lock", func() bool { return count() >= before+5 })
}

package etcdstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

// noon is away from the end of a step.
var noon = time.UnixMilli(1_764_000_060_000)

// hands is a clock that is set by hand.
type hands struct{ ahead atomic.Int64 }

func (h *hands) now() time.Time          { return noon.Add(time.Duration(h.ahead.Load())) }
func (h *hands) advance(d time.Duration) { h.ahead.Add(int64(d)) }

// exists reports whether the server has a key.
func exists(t *testing.T, c *clientv3.Client, key string) bool {
	t.Helper()
	reply, err := c.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return reply.Count > 0
}

// Between the read of an Acquire and its transaction the counter, which was
// absent, is created, moved and dropped, and so is absent again. What shows it
// is the record, whose step had to move first.
func TestTheRaceOfADroppedCounterIsSeenByTheRecord(t *testing.T) {
	for _, mutant := range []bool{false, true} {
		node, c := testserver.Etcd(t), (*clientv3.Client)(nil)
		clock := &hands{}
		w, slow := wired(t, node)
		c = client(t, node)
		a, b := store(t, slow), store(t, c)
		etcdstore.SetClock(a, clock.now)
		etcdstore.SetClock(b, clock.now)
		declareNew(t, b)
		var others int64
		w.once(func(txn *etcdserverpb.TxnRequest) {
			for range 2 {
				r := ask("k", owner())
				others = mustAcquire(t, b, r).Token
				mustRelease(t, b, r)
			}
			clock.advance((etcdstore.RestSteps + 2) * 5 * time.Minute)
			mustAcquire(t, b, ask("another", owner())) // moves the step
			await(t, 10*time.Second, "the counter to be dropped", func() bool { return !exists(t, c, "quorum/name/k/count") })
			if mutant {
				without(txn, "quorum/record")
			}
		})
		token := mustAcquire(t, a, ask("k", owner())).Token
		if !mutant && token <= others {
			t.Errorf("token %d after %d: the drop of the counter was not seen", token, others)
		}
		if mutant && token > others {
			t.Errorf("token %d after %d: without the record's compare the race does not show", token, others)
		}
	}
}

// fast is a clock on which a step lasts 0.4 s, for all stores of a
// process alike.
func fast() func() time.Time {
	begin := time.Now()
	return func() time.Time { return noon.Add(time.Since(begin) * 750) }
}

// drops counts the counters that are dropped until its context ends.
func drops(ctx context.Context, c *clientv3.Client) *atomic.Int64 {
	n := new(atomic.Int64)
	watch := c.Watch(ctx, "quorum/name/", clientv3.WithPrefix(), clientv3.WithFilterPut())
	go func() {
		for reply := range watch {
			for _, e := range reply.Events {
				if strings.HasSuffix(string(e.Kv.Key), "/count") {
					n.Add(1)
				}
			}
		}
	}()
	return n
}

// Fifty goroutines take names that are in use, names that were never used and
// names whose counters are dropped meanwhile, while steps fly.
func TestR58NoTokenTwiceWhileCountersAreDropped(t *testing.T) {
	node, clock := testserver.Etcd(t), fast()
	var stores []*etcdstore.Store
	for range 2 {
		s := store(t, client(t, node))
		etcdstore.SetClock(s, clock)
		stores = append(stores, s)
	}
	declareNew(t, stores[0])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dropped := drops(ctx, client(t, node))
	var mu sync.Mutex
	var tokens atomic.Int64
	last, begin := map[string]int64{}, time.Now()
	shown := func() bool { return tokens.Load() >= 200 && dropped.Load() >= 20 }
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			for n := i; time.Since(begin) < 5*time.Second || time.Since(begin) < time.Minute && !shown(); n++ {
				// Three groups of names take turns; the other two rest.
				turn := time.Since(begin) / (1500 * time.Millisecond) % 3
				s, r := stores[i%2], ask(fmt.Sprintf("%d-%d", turn, n%8), owner())
				if n%5 == 0 {
					r.Key = fmt.Sprintf("new-%d-%d", i, n)
				}
				g, err := s.Acquire(t.Context(), r)
				if err != nil { // contended, or too slow a machine
					r.Entomb = quorum.OutcomeOf(err) == quorum.OutcomeUnknown
					_ = s.Release(t.Context(), r)
					continue
				}
				mu.Lock() // the name is held: nobody else's token comes between
				tokens.Add(1)
				if g.Token <= last[r.Key] {
					t.Errorf("token %d of %q after %d", g.Token, r.Key, last[r.Key])
				}
				last[r.Key] = g.Token
				mu.Unlock()
				_ = s.Release(t.Context(), r)
			}
		})
	}
	wait.Wait()
	t.Logf("%d tokens of %d names, %d counters dropped", tokens.Load(), len(last), dropped.Load())
	if !shown() {
		t.Error("too little to show anything")
	}
}

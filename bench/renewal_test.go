//go:build unix

package bench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// renewal measures W7: one process that holds many leases, all of them renewed
// every third of their TTL.
func renewal(b *testing.B, n, leases int, ttl time.Duration) (*setting, *table) {
	t, out := &setting{}, &table{head: []string{"", "measured"}}
	t.measured = b.Run(fmt.Sprintf("renewal/N=%d/%d leases", n, leases), func(b *testing.B) {
		s := start(b, n, 0)
		var lost, late atomic.Int64
		l := s.locker(quorum.TTL(ttl), quorum.Expiring(ttl/2), quorum.Observe(func(e quorum.Event) {
			switch e.Kind {
			case quorum.EventLost:
				lost.Add(1)
			case quorum.EventExpiring:
				late.Add(1)
			}
		}))
		s.warm(inOrder, slices.Repeat([]locks{locker{l}}, 128)...)
		before := memory()
		began := time.Now()
		held := hoard(b, l, leases)
		took := time.Since(began)
		bytes := (memory() - before) / float64(leases)
		<-time.After(ttl / 3) // until the first of them have been renewed

		const window = 10 // looks, one a second
		counted, used, start := s.count(inOrder.commands), spent(), time.Now()
		least := ttl
		for range window {
			<-time.After(time.Second)
			for _, lease := range held {
				least = min(least, lease.Remaining())
			}
		}
		length := time.Since(start)
		now, counts := spent(), s.between(counted, inOrder.commands)
		perSecond := length.Seconds()
		cores := (now.cpu - used.cpu).Seconds() / perSecond
		t.samples = map[string][]sample{"W7": {{"cores": cores, "bytes": bytes, "late": float64(late.Load() + lost.Load())}}}
		out.add("leases", fmt.Sprintf("%d, TTL %v, N = %d, taken within %.0f s", leases, ttl, n, took.Seconds()))
		out.add("renewals a second and store, as the servers count them", whole(counts.commands/perSecond/float64(n)))
		out.add("cores used by the client", hundred(cores))
		out.add("cores used by all servers", hundred(counts.cpu.Seconds()/perSecond))
		out.add("reads of a server's socket a renewal of one store", hundred(counts.reads/counts.commands))
		out.add("memory a lease, bytes", whole(bytes))
		out.add("goroutines", fmt.Sprint(runtime.NumGoroutine()))
		out.add("least validity left, s (a renewal is due at two thirds of the TTL)", tenth(least.Seconds()))
		out.add("renewals not done at half of the TTL", fmt.Sprint(late.Load()))
		out.add("leases lost", fmt.Sprint(lost.Load()))
	})
	return t, out
}

// hoard takes leases by many goroutines.
func hoard(b *testing.B, l *quorum.Locker, leases int) []*quorum.Lease {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 90*time.Second) // a machine that is too slow for it fails
	defer cancel()
	held := make([]*quorum.Lease, leases)
	var next atomic.Int64
	var all sync.WaitGroup
	for range 256 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(leases); i = next.Add(1) - 1 {
				lease, err := l.Acquire(ctx, fmt.Sprintf("lease %06d", i))
				if err != nil {
					b.Error(err)
					return
				}
				held[i] = lease
			}
		})
	}
	all.Wait()
	if b.Failed() {
		b.FailNow()
	}
	return held
}

// memory is what is in use, of the heap and of stacks.
func memory() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

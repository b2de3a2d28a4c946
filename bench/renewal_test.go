//go:build unix

package bench

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// renewal measures W7: one process that holds many leases, all of them renewed
// every third of their TTL. A machine that cannot hold so many shows how many it
// can.
func renewal(b *testing.B, n, leases int, ttl time.Duration) (m sample, why string) {
	b.Run(fmt.Sprintf("renewal/N=%d/%d leases", n, leases), func(b *testing.B) {
		s := start(b, n, 0)
		before, _ := memory()
		set := s.lasting()
		s.declared(set)
		few := runtime.NumGoroutine()
		var lost, late, failed atomic.Int64
		l, err := quorum.New(set, quorum.TTL(ttl), quorum.Expiring(ttl/2), quorum.Observe(func(e quorum.Event) {
			switch e.Kind {
			case quorum.EventLost:
				lost.Add(1)
			case quorum.EventExpiring:
				late.Add(1)
			case quorum.EventRenewFailed:
				failed.Add(1)
			}
		}))
		if err != nil {
			b.Fatal(err)
		}
		s.warm(inOrder, slices.Repeat([]locks{locker{l}}, 128)...)
		began := time.Now()
		var held []*quorum.Lease
		held, why = hoard(b.Context(), l, leases, func() bool { return late.Load() > 0 })
		m = sample{"leases": float64(len(held)), "taken": float64(len(held)) / time.Since(began).Seconds()}
		heap, stacks := memory()
		m["stacks"] = stacks / (1 << 20)
		<-time.After(ttl / 3) // until the first of them have been renewed

		const window = 10 // looks, one a second
		counted, used, start := s.count(inOrder.commands), spent(), time.Now()
		missed := failed.Load()
		least := ttl
		for range window {
			<-time.After(time.Second)
			for _, lease := range held {
				least = min(least, lease.Remaining())
			}
		}
		counts, cpu := s.between(counted, inOrder.commands), spent().cpu-used.cpu
		seconds := time.Since(start).Seconds()
		m["cores"], m["server cores"] = cpu.Seconds()/seconds, counts.cpu.Seconds()/seconds
		m["cores each"] = m["cores"] / m["leases"] * 10_000
		m["commands"], m["reads"] = counts.commands/seconds, counts.reads/counts.commands
		m["goroutines"], m["least"] = float64(runtime.NumGoroutine()), least.Seconds()
		m["failed"], m["late"], m["lost"] = float64(failed.Load()-missed), float64(late.Load()), float64(lost.Load())

		closing, cancel := context.WithTimeout(b.Context(), hoardMost)
		defer cancel()
		clients := before // nothing is taken off as theirs unless all leases were given back
		if l.Close(closing) == nil {
			l, held = nil, nil
			for range 100 { // until the last calls have ended
				if runtime.NumGoroutine() <= few {
					break
				}
				<-time.After(100 * time.Millisecond)
			}
			clients, _ = memory()
		}
		m["all"], m["bytes"], m["clients"] = (heap-before)/m["leases"], (heap-clients)/m["leases"], (clients-before)/(1<<20)
	})
	return m, why
}

// lasting is a set of stores whose clients outlive its Lockers, so that what they
// hold can be told from what leases do: all connections and buffers that the
// leases had them make stay.
func (s *servers) lasting() *quorum.CombinedStore {
	s.tb.Helper()
	var members []quorum.Store
	for i, addr := range s.addrs {
		m, err := redisstore.Opener().Open(s.tb.Context(), &url.URL{Scheme: "redis", Host: addr, RawQuery: fmt.Sprint("name=node", i)})
		if err != nil {
			s.tb.Fatal(err)
		}
		s.tb.Cleanup(func() { _ = m.(io.Closer).Close() })
		members = append(members, m)
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		s.tb.Fatal(err)
	}
	return set
}

var renewalColumns = []column{
	{"held", "leases", whole},
	{"taken a second", "taken", whole},
	{"cores used by the client", "cores", hundred},
	{"the same for 10,000 leases", "cores each", thousandth},
	{"cores used by all servers", "server cores", hundred},
	{"commands a second, at all servers", "commands", whole},
	{"reads of their sockets a command", "reads", hundred},
	{"heap a lease, all included, bytes", "all", whole},
	{"heap of the clients once the leases are given back, MiB", "clients", tenth},
	{"heap a lease beyond that, bytes", "bytes", whole},
	{"stacks of all goroutines, MiB", "stacks", tenth},
	{"goroutines", "goroutines", whole},
	{"least validity left, s (a renewal is due at two thirds of the TTL)", "least", tenth},
	{"rounds that failed, of those measured", "failed", whole},
	{"renewals not done at half of the TTL", "late", whole},
	{"leases lost", "lost", whole},
}

// How long may pass without much being taken, what that is, and how long it may
// last in all.
const (
	hoardLook = 10 * time.Second
	hoardPace = 100 // a second
	hoardMost = 4 * time.Minute
)

// hoard takes leases by many goroutines. It stops before it has all of them, and
// says why, when it makes no progress or those that it has are renewed late.
func hoard(ctx context.Context, l *quorum.Locker, leases int, full func() bool) (held []*quorum.Lease, why string) {
	ctx, cancel := context.WithTimeout(ctx, hoardMost)
	defer cancel()
	var next, taken atomic.Int64
	var failure atomic.Value
	var all sync.WaitGroup
	got := make([]*quorum.Lease, leases)
	for range 128 {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(leases) && ctx.Err() == nil; i = next.Add(1) - 1 {
				lease, err := l.Acquire(ctx, fmt.Sprintf("lease %06d", i))
				if err != nil {
					failure.CompareAndSwap(nil, err.Error())
					return
				}
				got[i] = lease
				taken.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	for last := int64(0); why == ""; {
		select {
		case <-done:
			if now := taken.Load(); now < int64(leases) {
				why = fmt.Sprint("taking ended: ", failure.Load())
			}
			held = slices.DeleteFunc(got, func(l *quorum.Lease) bool { return l == nil })
			return held, why
		case <-time.After(hoardLook):
		}
		now := taken.Load()
		switch {
		case full():
			why = "some that were held were renewed late"
		case now-last < int64(hoardLook.Seconds()*hoardPace):
			why = fmt.Sprintf("only %d more were taken within %v", now-last, hoardLook)
		}
		last = now
	}
	cancel()
	<-done
	held = slices.DeleteFunc(got, func(l *quorum.Lease) bool { return l == nil })
	return held, fmt.Sprintf("of %d leases %d are held: %s", leases, len(held), why)
}

// memory is what is in use, of the heap and of stacks: the median of five looks,
// since calls that are under way come and go.
func memory() (heap, stacks float64) {
	read := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	var heaps, all []float64
	for range 5 {
		runtime.GC()
		runtime.GC() // what pools kept
		metrics.Read(read)
		heaps, all = append(heaps, float64(read[0].Value.Uint64())), append(all, float64(read[1].Value.Uint64()))
		<-time.After(50 * time.Millisecond)
	}
	slices.Sort(heaps)
	slices.Sort(all)
	return heaps[2], all[2]
}

package redisstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
)

// BenchmarkPair is one acquire and one release of a known key, and, in
// "usec/pair", the server's time for the two scripts.
func BenchmarkPair(b *testing.B) {
	c := client(b, testserver.Redis(b).Addr)
	s := store(b, c)
	r := ask("bench", owner())
	r.TTL, r.MaxTTL = 15*time.Second, time.Minute
	declareNewFor(b, s, r)
	pair := func() {
		r.Owner.Attempt++
		mustAcquire(b, s, r)
		mustRelease(b, s, r)
	}
	pair()
	if err := c.ConfigResetStat(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		pair()
	}
	b.StopTimer()
	info, err := c.InfoMap(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(2*evalMicros(b, info), "usec/pair")
}

// BenchmarkTurn is what a turn of one of 16 costs a store: it stands in line while
// another holds, hears of its turn, takes and releases.
func BenchmarkTurn(b *testing.B) {
	c := client(b, testserver.Redis(b).Addr)
	s := store(b, c)
	var line []quorum.Request
	for i := range 16 {
		line = append(line, waits("bench", owner(), int64(i+1)))
	}
	ticket := int64(len(line))
	declareNewFor(b, s, line[0])
	mustAcquire(b, s, line[0])
	turn := func() {
		holder := &line[0]
		mustRelease(b, s, *holder)
		holder.Owner.Attempt++
		ticket++
		holder.Wait, holder.Ticket = quorum.WaitQueue, ticket
		line = append(line[1:], *holder)
		line[0].Wait = quorum.WaitTake
		mustAcquire(b, s, line[0])
		if _, err := s.Acquire(b.Context(), line[len(line)-1]); quorum.OutcomeOf(err) != quorum.OutcomeContended {
			b.Fatal(err)
		}
	}
	for i := range line[1:] {
		line[i+1].Wait = quorum.WaitQueue
		if _, err := s.Acquire(b.Context(), line[i+1]); quorum.OutcomeOf(err) != quorum.OutcomeContended {
			b.Fatal(err)
		}
	}
	if err := c.ConfigResetStat(b.Context()).Err(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		turn()
	}
	b.StopTimer()
	info, err := c.InfoMap(b.Context(), "commandstats").Result()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(3*evalMicros(b, info), "usec/turn")
}

// BenchmarkRefusal is an acquire beside a holder.
func BenchmarkRefusal(b *testing.B) {
	s := store(b, client(b, testserver.Redis(b).Addr))
	r := ask("bench", owner())
	r.TTL, r.MaxTTL = time.Hour, time.Hour
	declareNewFor(b, s, r)
	mustAcquire(b, s, r)
	r.Owner = owner()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Acquire(b.Context(), r); quorum.OutcomeOf(err) != quorum.OutcomeContended {
			b.Fatal(err)
		}
	}
}

// BenchmarkMany is pairs of acquire and release by many goroutines, each on a
// name of its own.
func BenchmarkMany(b *testing.B) {
	s := store(b, client(b, testserver.Redis(b).Addr))
	r := ask("bench", owner())
	r.TTL, r.MaxTTL = 15*time.Second, time.Minute
	declareNewFor(b, s, r)
	for _, n := range []int{1, 16, 128, 1024} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			b.ResetTimer()
			for i := range n {
				all.Go(func() {
					mine := r
					mine.Key, mine.Owner = fmt.Sprint("bench ", i), owner()
					for left.Add(-1) >= 0 {
						mine.Owner.Attempt++
						mustAcquire(b, s, mine)
						mustRelease(b, s, mine)
					}
				})
			}
			all.Wait()
		})
	}
}

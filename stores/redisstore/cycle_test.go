//go:build unix

package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// nodes starts n servers and returns a Locker over them, and a client of each.
func nodes(tb testing.TB, n int, options ...quorum.Option) (*quorum.Locker, []*redis.Client) {
	tb.Helper()
	var members []quorum.Store
	var clients []*redis.Client
	for i := range n {
		c := client(tb, testserver.Redis(tb).Addr)
		s, err := redisstore.New(fmt.Sprint("n", i), c)
		if err != nil {
			tb.Fatal(err)
		}
		members, clients = append(members, s), append(clients, c)
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := quorum.New(set, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close(context.Background()) })
	if err := l.Init(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	return l, clients
}

// once takes a lock and gives it back.
func once(tb testing.TB, l *quorum.Locker, key string) {
	lease, err := l.Acquire(tb.Context(), key)
	if err == nil {
		err = lease.Release(tb.Context())
	}
	if err != nil {
		tb.Error(err)
	}
}

// BenchmarkCycle is acquire and release over three and five servers by many
// goroutines, each on a name of its own. The row "scripts" is what it is
// measured by: the same scripts over the same clients, in pipelines, with no
// protocol around them. "cpu-us" is what this process and the servers spent on a
// cycle together: where other programs share the machine, its ratio tells what
// the rates do not.
func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{3, 5} {
		l, clients := nodes(b, n)
		for _, many := range []int{1, 16, 128, 1024} {
			b.Run(fmt.Sprintf("stores=%d/goroutines=%d", n, many), func(b *testing.B) {
				b.ReportAllocs()
				var left atomic.Int64
				left.Store(int64(b.N))
				var all sync.WaitGroup
				ours, theirs := cpu(b, clients)
				b.ResetTimer()
				for i := range many {
					all.Go(func() {
						for key := fmt.Sprint("bench ", i); left.Add(-1) >= 0; {
							once(b, l, key)
						}
					})
				}
				all.Wait()
				report(b, clients, b.N, ours, theirs)
			})
		}
		sent := conversation(b, l, clients)
		b.Run(fmt.Sprintf("stores=%d/scripts", n), func(b *testing.B) { repeat(b, clients, sent) })
	}
}

// cpu is the time that this process and the servers have spent so far.
func cpu(b *testing.B, clients []*redis.Client) (ours, theirs time.Duration) {
	b.Helper()
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	ours = time.Duration(own.Utime.Nano() + own.Stime.Nano())
	for _, c := range clients {
		info, err := c.InfoMap(b.Context(), "cpu").Result()
		if err != nil {
			b.Fatal(err)
		}
		for _, field := range []string{"used_cpu_sys", "used_cpu_user"} {
			seconds, err := strconv.ParseFloat(info["CPU"][field], 64)
			if err != nil {
				b.Fatal(err)
			}
			theirs += time.Duration(seconds * float64(time.Second))
		}
	}
	return ours, theirs
}

// report says how fast n of something were done, and what each cost.
func report(b *testing.B, clients []*redis.Client, n int, ours, theirs time.Duration) {
	b.Helper()
	b.StopTimer()
	here, there := cpu(b, clients)
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "each/s")
	b.ReportMetric(float64((here-ours).Microseconds())/float64(n), "own-us")
	b.ReportMetric(float64((here-ours+there-theirs).Microseconds())/float64(n), "cpu-us")
}

// BenchmarkHeld is b.N held leases for three renewals each: give -benchtime
// 10000x. "each" is a renewal; "late" counts those that had not come by half of
// the TTL, and "calls/trip" how many calls shared a round trip.
func BenchmarkHeld(b *testing.B) {
	const ttl = 9 * time.Second
	var renewed, late, trips, calls atomic.Int64
	l, clients := nodes(b, 3, quorum.TTL(ttl), quorum.Expiring(ttl/2), quorum.Observe(func(e quorum.Event) {
		switch e.Kind {
		case quorum.EventRenewed:
			renewed.Add(1)
		case quorum.EventExpiring, quorum.EventLost, quorum.EventRenewFailed:
			late.Add(1)
		}
	}))
	for _, c := range clients {
		c.AddHook(before(func(names ...string) {
			trips.Add(1)
			calls.Add(int64(len(names)))
		}))
	}
	var all sync.WaitGroup
	var next atomic.Int64
	for range 64 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := l.Acquire(b.Context(), fmt.Sprint("held ", i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
	renewed.Store(0)
	trips.Store(0)
	calls.Store(0)
	ours, theirs := cpu(b, clients)
	b.ResetTimer()
	<-time.After(ttl)
	report(b, clients, max(int(renewed.Load()), 1), ours, theirs)
	b.ReportMetric(float64(late.Load()), "late")
	b.ReportMetric(float64(calls.Load())/float64(max(trips.Load(), 1)), "calls/trip")
}

// sending is a hook of a client that calls itself with each command.
type sending func(redis.Cmder)

func (sending) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f sending) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		f(cmd)
		return next(ctx, cmd)
	}
}

func (f sending) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			f(cmd)
		}
		return next(ctx, cmds)
	}
}

// names is how many cycles a conversation has, and commands a pipeline of it.
const names = 256

// conversation returns what cycles of names send to each server. It closes the
// Locker, so that nothing of the cycles is left out.
func conversation(b *testing.B, l *quorum.Locker, clients []*redis.Client) [][][]any {
	b.Helper()
	sent := make([][][]any, len(clients))
	var mu sync.Mutex
	on := true
	for i, c := range clients {
		c.AddHook(sending(func(cmd redis.Cmder) {
			mu.Lock()
			defer mu.Unlock()
			if !on || cmd.Name() != "evalsha" {
				return
			}
			var args []any
			for _, a := range cmd.Args() {
				if s, ok := a.(*string); ok {
					a = *s
				}
				args = append(args, a)
			}
			sent[i] = append(sent[i], args)
		}))
	}
	for i := range names {
		once(b, l, fmt.Sprint("bench ", i))
	}
	if err := l.Close(b.Context()); err != nil {
		b.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	on = false
	return sent
}

// repeat sends a conversation again and again, four pipelines at a time.
func repeat(b *testing.B, clients []*redis.Client, sent [][][]any) {
	const lanes = redisstore.LaneCount
	rounds := (b.N + names*lanes - 1) / (names * lanes)
	ours, theirs := cpu(b, clients)
	b.ResetTimer()
	var all sync.WaitGroup
	for i, c := range clients {
		for range lanes {
			all.Go(func() {
				for range rounds {
					for from := 0; from < len(sent[i]); from += names {
						pipe := c.Pipeline()
						for _, args := range sent[i][from:min(from+names, len(sent[i]))] {
							pipe.Do(b.Context(), args...)
						}
						if _, err := pipe.Exec(b.Context()); err != nil {
							b.Error(err)
						}
					}
				}
			})
		}
	}
	all.Wait()
	report(b, clients, rounds*names*lanes, ours, theirs)
}

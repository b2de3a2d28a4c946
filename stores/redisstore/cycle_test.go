package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
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
// protocol around them.
func BenchmarkCycle(b *testing.B) {
	for _, n := range []int{3, 5} {
		l, clients := nodes(b, n)
		for _, many := range []int{1, 16, 128, 1024} {
			b.Run(fmt.Sprintf("stores=%d/goroutines=%d", n, many), func(b *testing.B) {
				b.ReportAllocs()
				var left atomic.Int64
				left.Store(int64(b.N))
				var all sync.WaitGroup
				b.ResetTimer()
				for i := range many {
					all.Go(func() {
						for key := fmt.Sprint("bench ", i); left.Add(-1) >= 0; {
							once(b, l, key)
						}
					})
				}
				all.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
			})
		}
		b.Run(fmt.Sprintf("stores=%d/scripts", n), func(b *testing.B) { scripts(b, l, clients) })
	}
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

// scripts repeats, in pipelines of 256, what cycles of 256 names sent.
func scripts(b *testing.B, l *quorum.Locker, clients []*redis.Client) {
	const names = 256
	sent := make([][][]any, len(clients))
	var mu sync.Mutex
	var on atomic.Bool
	on.Store(true)
	for i, c := range clients {
		c.AddHook(sending(func(cmd redis.Cmder) {
			if mu.Lock(); on.Load() && cmd.Name() == "evalsha" {
				var args []any
				for _, a := range cmd.Args() {
					if s, ok := a.(*string); ok {
						a = *s
					}
					args = append(args, a)
				}
				sent[i] = append(sent[i], args)
			}
			mu.Unlock()
		}))
	}
	for i := range names {
		once(b, l, fmt.Sprint("bench ", i))
	}
	time.Sleep(time.Second)
	on.Store(false)
	b.ResetTimer()
	var all sync.WaitGroup
	for i, c := range clients {
		const lanes = 4
		for range lanes {
			all.Go(func() {
				for done := 0; done < b.N; done += names * lanes {
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
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "cycles/s")
	b.ReportMetric(float64(len(sent[0]))/names, "scripts/store")
}

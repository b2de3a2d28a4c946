//go:build unix

package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncredis "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// BenchmarkUncontended takes and gives back one lock that nobody else wants:
// what a cycle costs in time and allocations, ours in each order and redsync's.
func BenchmarkUncontended(b *testing.B) {
	for _, n := range []int{1, 3, 5} {
		clients := nodes(b, n)
		for _, order := range []quorum.Order{quorum.InOrder, quorum.FirstThenRest, quorum.AllAtOnce} {
			b.Run(fmt.Sprintf("N=%d/quorum %v", n, order), func(b *testing.B) {
				l := locker(b, clients, quorum.AskOrder(order))
				b.ReportAllocs()
				for b.Loop() {
					lease, err := l.Acquire(b.Context(), "job")
					if err != nil {
						b.Fatal(err)
					}
					if err := lease.Release(b.Context()); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("N=%d/redsync", n), func(b *testing.B) {
			var pools []redsyncredis.Pool
			for _, c := range clients {
				pools = append(pools, goredis.NewPool(c))
			}
			rs := redsync.New(pools...)
			b.ReportAllocs()
			for b.Loop() {
				m := rs.NewMutex("redsync-job", redsync.WithExpiry(15*time.Second))
				if err := m.LockContext(b.Context()); err != nil {
					b.Fatal(err)
				}
				if ok, err := m.UnlockContext(b.Context()); !ok || err != nil {
					b.Fatal(ok, err)
				}
			}
		})
	}
}

// nodes starts Redis servers and a client for each.
func nodes(b *testing.B, n int) []*redis.Client {
	b.Helper()
	var clients []*redis.Client
	for range n {
		c := redis.NewClient(&redis.Options{
			Addr: testserver.Redis(b).Addr, MaxRetries: -1, ContextTimeoutEnabled: true,
		})
		b.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	return clients
}

// locker combines the nodes and declares them new.
func locker(b *testing.B, clients []*redis.Client, options ...quorum.Option) *quorum.Locker {
	b.Helper()
	var members []quorum.Store
	for i, c := range clients {
		s, err := redisstore.New(fmt.Sprint("node", i), c)
		if err != nil {
			b.Fatal(err)
		}
		members = append(members, s)
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		b.Fatal(err)
	}
	l, err := quorum.New(set, options...)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = l.Close(context.Background()) })
	if err := l.Init(b.Context()); err != nil {
		b.Fatal(err)
	}
	return l
}

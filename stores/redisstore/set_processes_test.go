//go:build unix && !race

package redisstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
)

// together is a soak over three nodes, and clients of these.
func together(t *testing.T, soak acceptance.Soak) (acceptance.Soak, []*redis.Client) {
	t.Helper()
	soak.Options = []quorum.Option{quorum.TTL(30 * time.Second), quorum.MaxTTL(30 * time.Second), quorum.CallLimit(10 * time.Second)}
	soak.Open = func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) { return combine(t, addrs), nil }
	var clients []*redis.Client
	if !acceptance.Worker() {
		for range 3 {
			node := testserver.Redis(t)
			soak.DSNs, clients = append(soak.DSNs, node.Addr), append(clients, client(t, node.Addr))
		}
	}
	return soak, clients
}

// TestR12AProcessIsOneWaiter: however many wait in a process, a server has one
// entry of it in the queue and one subscription.
func TestR12AProcessIsOneWaiter(t *testing.T) {
	soak, nodes := together(t, acceptance.Soak{Processes: 4, Workers: 100, Rounds: 2})
	soak.Trouble = func(entered func() int) {
		set, err := soak.Open(t.Context(), soak.DSNs)
		if err != nil {
			t.Fatal(err)
		}
		l, err := quorum.New(set, soak.Options...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close(context.Background()) }()
		acceptance.Poll(t, time.Minute, "some work", func() bool { return entered() > 0 || t.Failed() })
		lease := acceptance.Acquire(t, l, "job") // the others wait meanwhile
		acceptance.Poll(t, time.Minute, "one entry a process", func() bool {
			for _, node := range nodes {
				if node.ZCard(t.Context(), "{quorum}:queue:job").Val() != int64(soak.Processes) {
					return false
				}
			}
			return true
		})
		for i, node := range nodes {
			list, err := node.ClientList(t.Context()).Result()
			if n := strings.Count(list, " flags=P "); err != nil || n > soak.Processes+1 {
				t.Errorf("node %d has %d subscribers of %d processes and the holder: %v", i, n, soak.Processes, err)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	soak.Run(t)
}

// TestR32R33ReadersAndWritersOfSeveralProcesses: no reader is inside with a
// writer, readers' tokens lie between those of the writers around them, and all
// come in.
func TestR32R33ReadersAndWritersOfSeveralProcesses(t *testing.T) {
	soak, _ := together(t, acceptance.Soak{Processes: 4, Workers: 6, Readers: 4, Rounds: 25})
	soak.Run(t)
}

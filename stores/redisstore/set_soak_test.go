//go:build unix

package redisstore_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// Ten processes take one lock over five nodes, two hundred times each, while
// one node is killed and comes back empty, and another is stopped for a while.
func TestTenProcessesNeverOverlapWhileNodesFail(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 10, Rounds: 200,
		Options: []quorum.Option{
			quorum.TTL(3 * time.Second), quorum.MaxTTL(3 * time.Second),
			quorum.CallLimit(100 * time.Millisecond), quorum.Backoff(2*time.Millisecond, 50*time.Millisecond),
		},
		Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
			var members []quorum.Store
			for i, addr := range addrs {
				members = append(members, named(t, "node"+strconv.Itoa(i), addr))
			}
			return quorum.Combine(quorum.Consensus(), members...)
		},
	}
	var nodes []*testserver.RedisNode
	if !acceptance.Worker() {
		for range 5 {
			node := testserver.Redis(t)
			nodes, soak.DSNs = append(nodes, node), append(soak.DSNs, node.Addr)
		}
	}
	soak.Trouble = func(entered func() int) {
		total := soak.Processes * soak.Rounds
		wait := func(what string, n int) {
			acceptance.Poll(t, time.Minute, what, func() bool { return entered() > n || t.Failed() })
		}
		wait("the first quarter", total/4)
		nodes[1].Stop()
		wait("some work without a node", total/3)
		nodes[3].Stall()
		at := entered()
		wait("some work without a second", at+20)
		nodes[3].Resume()
		wait("some work with four", at+100)
		nodes[1].RestartEmpty()
	}
	soak.Run(t)
}

func named(t *testing.T, name, addr string) quorum.Store {
	t.Helper()
	s, err := redisstore.New(name, client(t, addr))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestR10R31TwoProcesses: one is killed, one hands its lease over.
func TestR10R31TwoProcesses(t *testing.T) {
	p := acceptance.Parting{
		Options: []quorum.Option{quorum.TTL(5 * time.Second), quorum.MaxTTL(5 * time.Second)},
		Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
			var members []quorum.Store
			for i, addr := range addrs {
				members = append(members, named(t, "node"+strconv.Itoa(i), addr))
			}
			return quorum.Combine(quorum.Consensus(), members...)
		},
	}
	if !acceptance.Worker() {
		for range 3 {
			p.DSNs = append(p.DSNs, testserver.Redis(t).Addr)
		}
	}
	p.Run(t)
}

//go:build unix && !race

package redisstore_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
)

// combine makes a set of servers, of which each process has clients of its own.
func combine(t *testing.T, addrs []string) *quorum.CombinedStore {
	t.Helper()
	var members []quorum.Store
	for i, addr := range addrs {
		members = append(members, named(t, "node"+strconv.Itoa(i), addr))
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestR13TurnsBetweenProcesses has workers of four processes take one lock in a
// closed loop: they are served in the order of asking, by few commands a node.
func TestR13TurnsBetweenProcesses(t *testing.T) {
	for _, row := range []struct {
		name                    string
		workers, rounds, stores int // workers of a process
		order                   quorum.Order
		most                    float64 // commands a node and acquisition
	}{
		{"16 of three", 4, 200, 3, quorum.InOrder, 3.2},
		{"8 of one", 2, 80, 1, quorum.InOrder, 3.2},
		{"64 of five", 16, 10, 5, quorum.InOrder, 3.2},
		{"16 of three all at once", 4, 40, 3, quorum.AllAtOnce, 4.2},
	} {
		t.Run(row.name, func(t *testing.T) {
			soak := acceptance.Soak{
				Processes: 4, Workers: row.workers, Rounds: row.rounds,
				Options: []quorum.Option{quorum.TTL(30 * time.Second), quorum.MaxTTL(30 * time.Second), quorum.AskOrder(row.order)},
				Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
					return combine(t, addrs), nil
				},
			}
			waiters := soak.Processes * soak.Workers
			var clients []*redis.Client
			if !acceptance.Worker() {
				for range row.stores {
					node := testserver.Redis(t)
					soak.DSNs, clients = append(soak.DSNs, node.Addr), append(clients, client(t, node.Addr))
				}
			}
			commands := 0.0
			soak.Trouble = func(entered func() int) { commands = perEntry(t, clients, waiters*soak.Rounds, entered) }
			turns := soak.Run(t)
			if acceptance.Worker() {
				return
			}
			turns.Judge(t, waiters)
			t.Logf("%.2f commands a node and acquisition", commands)
			if commands > row.most*1.05 {
				t.Errorf("%.2f commands a node and acquisition, want at most %.1f", commands, row.most)
			}
		})
	}
}

// perEntry counts the commands of the busiest node for each entry, as the node
// counts them, once the work is under way and before it ends.
func perEntry(t *testing.T, clients []*redis.Client, total int, entered func() int) float64 {
	wait := func(n int) int {
		acceptance.Poll(t, 2*time.Minute, "some work", func() bool { return entered() >= n || t.Failed() })
		return entered()
	}
	from := wait(total / 4)
	for _, c := range clients {
		if err := c.ConfigResetStat(t.Context()).Err(); err != nil {
			t.Error(err)
		}
	}
	entries := wait(total*3/4) - from
	most := 0.0
	for _, c := range clients {
		most = max(most, calls(t, c, "evalsha")/float64(entries))
	}
	return most
}

// calls is how often a server was sent a command.
func calls(t *testing.T, c *redis.Client, command string) float64 {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Error(err)
	}
	_, text, _ := strings.Cut(info["Commandstats"]["cmdstat_"+command], "calls=")
	text, _, _ = strings.Cut(text, ",")
	n, _ := strconv.ParseFloat(text, 64)
	return n
}

// TestF016TheDeadAreNotWaitedFor: a server of Redis counts who listens, so that
// several that died one behind the other cost nothing.
func TestF016TheDeadAreNotWaitedFor(t *testing.T) {
	line := acceptance.Line{Dead: 3, Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
		return combine(t, addrs), nil
	}}
	if !acceptance.Worker() {
		for range 3 {
			line.DSNs = append(line.DSNs, testserver.Redis(t).Addr)
		}
		node := client(t, line.DSNs[0])
		line.Queued = func() int { return int(node.ZCard(t.Context(), "{quorum}:queue:job").Val()) }
	}
	line.Run(t)
}

// TestR33AWriterPassesReadersThatComeLater: no writer waits for more than the
// readers before it.
func TestR33AWriterPassesReadersThatComeLater(t *testing.T) {
	addrs := []string{testserver.Redis(t).Addr, testserver.Redis(t).Addr, testserver.Redis(t).Addr}
	acceptance.Readers(t, func() *quorum.CombinedStore { return combine(t, addrs) })
}

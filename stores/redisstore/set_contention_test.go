//go:build unix && !race

package redisstore_test

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
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

const waiterOf = "QUORUM_WAITER_OF"

// TestF016TheDeadAreNotWaitedFor kills the processes at the head of a queue.
func TestF016TheDeadAreNotWaitedFor(t *testing.T) {
	options := []quorum.Option{quorum.TTL(30 * time.Second), quorum.MaxTTL(30 * time.Second)}
	addrs := strings.Fields(os.Getenv(waiterOf))
	child := len(addrs) > 0
	for len(addrs) < 3 {
		addrs = append(addrs, testserver.Redis(t).Addr)
	}
	l, err := quorum.New(combine(t, addrs), options...)
	if err != nil {
		t.Fatal(err)
	}
	if child {
		_, _ = l.Acquire(t.Context(), "job") // until it is killed
		return
	}
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	holder, err := l.Acquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	node := client(t, addrs[0])
	queued := func(n int64) {
		acceptance.Poll(t, time.Minute, "a place in the queue", func() bool {
			return node.ZCard(t.Context(), "{quorum}:queue:job").Val() == n
		})
	}
	var dead []*exec.Cmd
	for i := range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), waiterOf+"="+strings.Join(addrs, " "))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		dead = append(dead, cmd)
		queued(int64(i + 1))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // a dead holder's TTL is longer
	defer cancel()
	var alive sync.WaitGroup
	alive.Go(func() {
		lease, err := l.Acquire(ctx, "job")
		if err != nil {
			t.Errorf("behind dead waiters: %v", err)
			return
		}
		if lease.Previous() != quorum.PreviousReleased {
			t.Errorf("the holder before %v", lease.Previous())
		}
		_ = lease.Release(t.Context())
	})
	queued(4)
	for _, cmd := range dead {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
	alive.Wait()
	if err := l.Close(ctx); err != nil {
		t.Error(err)
	}
}

// TestR33AWriterPassesReadersThatComeLater: readers come all the
// time, and no writer waits for more than those before it.
func TestR33AWriterPassesReadersThatComeLater(t *testing.T) {
	addrs := []string{testserver.Redis(t).Addr, testserver.Redis(t).Addr, testserver.Redis(t).Addr}
	locker := func() *quorum.Locker {
		l, err := quorum.New(combine(t, addrs), quorum.TTL(30*time.Second), quorum.MaxTTL(30*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close(context.WithoutCancel(t.Context())) })
		return l
	}
	writer := locker()
	if err := writer.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	const readers = 4
	var reads atomic.Int64
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	for range readers {
		l := locker()
		all.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Acquire(ctx, "job", quorum.Shared())
				if err == nil {
					reads.Add(1)
					_ = lease.Release(context.WithoutCancel(ctx))
				}
			}
		})
	}
	acceptance.Poll(t, time.Minute, "readers", func() bool { return reads.Load() > 20 })
	for range 20 {
		from := reads.Load()
		lease, err := writer.Acquire(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		if n := reads.Load() - from; n > 20*readers {
			t.Errorf("%d readers came in before a writer that waited", n)
		}
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
	}
	cancel()
	all.Wait()
}

//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum/internal/testserver"
)

// servers are the Redis servers of one setting, which all its rows use, and the
// servers of other kinds that a row asked for.
type servers struct {
	tb     testing.TB
	nodes  []*testserver.RedisNode
	addrs  []string // where clients connect: the nodes, or proxies before them
	info   []*redis.Client
	delay  time.Duration     // one way
	asking count             // what a look at the counters itself is counted as
	others map[string]string // addresses of servers of other kinds
	inits  bool              // the set was declared new
}

// start starts n Redis servers, behind proxies if there is a delay.
func start(tb testing.TB, n int, delay time.Duration) *servers {
	tb.Helper()
	s := &servers{tb: tb, delay: delay, others: map[string]string{}}
	for range n {
		node := testserver.Redis(tb)
		info := redis.NewClient(&redis.Options{Addr: node.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, PoolSize: 1})
		tb.Cleanup(func() { _ = info.Close() })
		s.nodes, s.info, s.addrs = append(s.nodes, node), append(s.info, info), append(s.addrs, s.reach(node.Addr))
	}
	first := s.count(nil)
	s.asking = s.count(nil).sub(first)
	return s
}

// reach returns the address by which clients reach a server.
func (s *servers) reach(addr string) string {
	if s.delay > 0 {
		return proxy(s.tb, addr, s.delay)
	}
	return addr
}

// between is what the servers have counted since an earlier look.
func (s *servers) between(before count, commands []string) count {
	c := s.count(commands).sub(before)
	c.reads, c.bytes = c.reads-s.asking.reads, c.bytes-s.asking.bytes
	return c
}

// count is what the servers have counted since they started.
type count struct {
	commands, reads, bytes float64
	cpu                    time.Duration
}

func (c count) sub(d count) count {
	return count{c.commands - d.commands, c.reads - d.reads, c.bytes - d.bytes, c.cpu - d.cpu}
}

// count asks the servers. Only the commands named are counted: those that a
// script runs count as commands too. A server that is down counts nothing.
func (s *servers) count(commands []string) count {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	var sum count
	for _, c := range s.info {
		all, err := c.InfoMap(ctx, "commandstats", "stats", "cpu").Result()
		if err != nil {
			continue
		}
		for _, name := range commands {
			var calls float64
			_, _ = fmt.Sscanf(all["Commandstats"]["cmdstat_"+name], "calls=%f", &calls)
			sum.commands += calls
		}
		sum.reads += number(all["Stats"]["total_reads_processed"])
		sum.bytes += number(all["Stats"]["total_net_input_bytes"]) + number(all["Stats"]["total_net_output_bytes"])
		sum.cpu += time.Duration((number(all["CPU"]["used_cpu_sys"]) + number(all["CPU"]["used_cpu_user"])) * float64(time.Second))
	}
	return sum
}

func number(text string) (n float64) {
	_, _ = fmt.Sscan(text, &n)
	return n
}

// warm makes the connections of a row's clients and uses its names, a worker
// each. A row may fail at first: redsync, told not to wait for all servers, ends
// the dialling of those that it did not wait for.
func (s *servers) warm(r row, clients ...locks) {
	s.tb.Helper()
	var err error
	for range 5 {
		err = nil
		for _, c := range (load{locks: clients, workers: len(clients), key: keys(r, 0, false), length: time.Minute, cycles: 2}).run() {
			err = errors.Join(err, c.err)
		}
		if err == nil {
			return
		}
	}
	s.tb.Logf("%s: not without errors before it is measured: %v", r.name, err) // how many succeed is measured too
}

//go:build unix

package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// set is several real Redis nodes as one store, each behind a wrapper that can
// cut it off.
type set struct {
	*acceptance.Set
	t       *testing.T
	nodes   []*testserver.RedisNode
	clients []*redis.Client
}

func newSet(t *testing.T, n int, options ...redisstore.Option) *set {
	t.Helper()
	s := &set{t: t}
	for range n {
		s.nodes = append(s.nodes, testserver.Redis(t))
	}
	s.combine(options...)
	return s
}

// combine puts stores over the nodes.
func (s *set) combine(options ...redisstore.Option) {
	s.t.Helper()
	var members []acceptance.Member
	for i, node := range s.nodes {
		c := client(s.t, node.Addr)
		st, err := redisstore.New("node"+strconv.Itoa(i), c, options...)
		if err != nil {
			s.t.Fatal(err)
		}
		s.clients = append(s.clients, c)
		members = append(members, acceptance.Member{Store: st})
	}
	s.Set = acceptance.Combine(s.t, members)
}

func acquire(t *testing.T, l *quorum.Locker, key string, options ...quorum.Option) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	lease, err := l.Acquire(ctx, key, options...)
	if err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return lease
}

// cycle takes a lock, gives it back, and returns its token.
func cycle(t *testing.T, l *quorum.Locker, key string) int64 {
	t.Helper()
	lease := acquire(t, l, key)
	if err := lease.Release(t.Context()); err != nil {
		t.Fatalf("release %q: %v", key, err)
	}
	return lease.Token()
}

// commands returns how many scripts node i has run, as it counts itself.
func (s *set) commands(i int) int {
	s.t.Helper()
	text, err := s.clients[i].Info(s.t.Context(), "commandstats").Result()
	if err != nil {
		s.t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(line, ":calls=")
		if !ok || name != "cmdstat_evalsha" {
			continue
		}
		n, _, _ := strings.Cut(rest, ",")
		calls, err := strconv.Atoi(n)
		if err != nil {
			s.t.Fatal(fmt.Errorf("commandstats line %q: %w", line, err))
		}
		total += calls
	}
	return total
}

//go:build unix

package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
	"github.com/quorumlock/quorum/storetest"
)

// set is several real Redis nodes as one store, each behind a wrapper that can
// cut it off.
type set struct {
	t       *testing.T
	nodes   []*testserver.RedisNode
	clients []*redis.Client
	spoil   []*storetest.Spoiled
	store   *quorum.CombinedStore

	mu     sync.Mutex
	events []quorum.Event
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
	var members []quorum.Store
	for i, node := range s.nodes {
		c := client(s.t, node.Addr)
		st, err := redisstore.New("node"+strconv.Itoa(i), c, options...)
		if err != nil {
			s.t.Fatal(err)
		}
		sp := storetest.Spoil(st)
		s.t.Cleanup(sp.Close)
		s.clients = append(s.clients, c)
		s.spoil = append(s.spoil, sp)
		members = append(members, sp)
	}
	var err error
	if s.store, err = quorum.Combine(quorum.Consensus(), members...); err != nil {
		s.t.Fatal(err)
	}
}

func (s *set) locker(options ...quorum.Option) *quorum.Locker {
	s.t.Helper()
	l, err := quorum.New(s.store, append([]quorum.Option{quorum.Observe(s.observe)}, options...)...)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

// fresh makes a locker of a set declared new.
func (s *set) fresh(options ...quorum.Option) *quorum.Locker {
	s.t.Helper()
	l := s.locker(options...)
	if err := l.Init(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *set) observe(e quorum.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

func (s *set) seen(kind quorum.EventKind) []quorum.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e quorum.Event) bool { return e.Kind != kind })
}

// cut makes nodes unreachable, and mends all others.
func (s *set) cut(nodes ...int) {
	for i, sp := range s.spoil {
		if slices.Contains(nodes, i) {
			sp.Set(storetest.Always(storetest.Fail(quorum.Undelivered(errors.New("cut off")))))
		} else {
			sp.Set()
		}
	}
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

// poll waits for a condition, within a bound.
func poll(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
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

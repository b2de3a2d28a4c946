//go:build unix

package redisstore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// Short times, so that a quarantine can be waited for.
var short = []quorum.Option{quorum.TTL(2 * time.Second), quorum.MaxTTL(2 * time.Second), quorum.NoRenew()}

// The holder stands on nodes 0 and 1. Node 1 comes back without what it
// acknowledged, and node 2, which was away, comes up: may a rival have 1 and 2?
func TestR46NodeThatForgotLetsNoRivalIn(t *testing.T) {
	everysec := testserver.RedisConfig("appendonly yes", "appendfsync everysec")
	for _, tc := range []struct {
		name   string
		option []testserver.RedisOption
		forget func(n *testserver.RedisNode, disk string)
	}{
		{"restarted empty, without persistence", nil,
			func(n *testserver.RedisNode, _ string) { n.RestartEmpty() }},
		{"restarted with persistence each second, and a lost second", []testserver.RedisOption{everysec},
			func(n *testserver.RedisNode, disk string) { n.RestartFrom(disk) }},
	} {
		for _, guard := range []bool{true, false} {
			name := tc.name
			if !guard {
				name += ", with the guard switched off"
			}
			t.Run(name, func(t *testing.T) {
				s := &set{t: t}
				for range 3 {
					s.nodes = append(s.nodes, testserver.Redis(t, tc.option...))
				}
				if guard {
					s.combine()
				} else {
					s.combine(redisstore.UnsafeNoGuard())
				}
				l := s.Fresh(quorum.TTL(20*time.Second), quorum.MaxTTL(20*time.Second), quorum.NoRenew())
				cycle(t, l, "warm-up")
				var disk string
				if tc.option != nil {
					acceptance.Poll(t, 5*time.Second, "the append-only file of node 1", func() bool {
						info, err := s.clients[1].Info(t.Context(), "persistence").Result()
						return err == nil && len(info) > 0
					})
					disk = s.nodes[1].CopyDisk()
				}
				s.Cut(2)
				holder := acquire(t, l, "job")
				tc.forget(s.nodes[1], disk)
				s.Cut(0) // the rival does not even see the node that remembers
				rival, err := s.Locker(quorum.TTL(20*time.Second), quorum.MaxTTL(20*time.Second)).TryAcquire(t.Context(), "job")
				if guard && (rival != nil || !errors.Is(err, quorum.ErrNoQuorum)) {
					t.Errorf("a rival beside %v, which is held: %v, %v", holder.Token(), rival, err)
				}
				if !guard && rival == nil {
					t.Errorf("without the guard the hole does not show: %v", err)
				}
				if holder.Err() != nil {
					t.Errorf("the holder: %v", holder.Err())
				}
				s.Cut()
			})
		}
	}
}

func TestR29TokensGrowAfterFlushall(t *testing.T) {
	// F002: one node of three, and of five, forgets between acquisitions.
	for _, n := range []int{3, 5} {
		s := newSet(t, n)
		l := s.Fresh(short...)
		last := int64(0)
		for round := range 2 * n {
			token := cycle(t, l, "job")
			if token <= last {
				t.Fatalf("round %d: token %d after %d", round, token, last)
			}
			last = token
			if err := s.clients[round%n].FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if round%2 == 1 { // every other time all of them are back before the next
				acceptance.Poll(t, 20*time.Second, "the end of all quarantines", func() bool { return s.allVote(l) })
			}
		}
	}
}

// allVote reports whether no node is in quarantine. It asks by acquiring, since
// that is what sets a node on its way back.
func (s *set) allVote(l *quorum.Locker) bool {
	s.t.Helper()
	if lease, err := l.TryAcquire(s.t.Context(), "another"); err == nil {
		_ = lease.Release(s.t.Context())
	}
	status, err := l.Inspect(s.t.Context(), "another")
	if err != nil {
		s.t.Fatal(err)
	}
	for i, st := range status.Stores {
		if st.Err != nil {
			return false
		}
		if st.State.Quarantine {
			// Ask this one first, so that the client meets it.
			_ = i
			return false
		}
	}
	return true
}

func TestR29AllRestartEmptyAndServeAgain(t *testing.T) {
	s := newSet(t, 3)
	l := s.Fresh(short...)
	before := cycle(t, l, "job")
	for _, n := range s.nodes {
		n.RestartEmpty()
	}
	start := time.Now()
	if _, err := l.TryAcquire(t.Context(), "job"); !errors.Is(err, quorum.ErrNoQuorum) {
		t.Errorf("right after all forgot: %v, want ErrNoQuorum", err)
	}
	after := cycle(t, l, "job")
	if gone := time.Since(start); gone < 1900*time.Millisecond {
		t.Errorf("served again after %v, before MaxTTL was over", gone)
	}
	if after <= before {
		t.Errorf("token %d after %d", after, before)
	}
	warned := s.Seen(quorum.EventRefilled)
	if len(warned) == 0 || warned[0].Err == nil {
		t.Errorf("that the servers' clocks vouch for the order was told as %+v", warned)
	}
}

func TestNewSetServesAtOnceAfterInitAndByItselfAfterMaxTTL(t *testing.T) {
	t.Run("after init", func(t *testing.T) {
		s := newSet(t, 3)
		l := s.Fresh(quorum.MaxTTL(time.Minute))
		if _, err := l.TryAcquire(t.Context(), "job"); err != nil {
			t.Errorf("after Init: %v", err)
		}
	})
	t.Run("by itself", func(t *testing.T) {
		s := newSet(t, 3)
		l := s.Locker(short...)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := l.Acquire(ctx, "job"); err != nil {
			t.Fatal(err)
		}
		if gone := time.Since(start); gone < 1900*time.Millisecond {
			t.Errorf("a new set served after %v, before MaxTTL was over", gone)
		}
		if len(s.Seen(quorum.EventNewSet)) != 1 {
			t.Errorf("that the set is new was told %d times, want once", len(s.Seen(quorum.EventNewSet)))
		}
	})
}

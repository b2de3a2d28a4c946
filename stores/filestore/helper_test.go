package filestore

import (
	"context"
	"errors"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

// maxTTL and set are those of every request of these tests.
const (
	maxTTL = time.Minute
	set    = quorum.Fingerprint(7)
)

func newDir(t testing.TB) string { return filepath.Join(t.TempDir(), "locks") }

// world is a machine that a test can reboot and whose wall clock it can turn.
func world(t testing.TB, c clock.Clock) *machine {
	t.Helper()
	m, err := thisMachine()
	if errors.Is(err, quorum.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	m.clock = c
	return m
}

func open(t testing.TB, dir string, c clock.Clock) *Store {
	t.Helper()
	return openOn(t, world(t, c), dir)
}

func openOn(t testing.TB, m *machine, dir string) *Store {
	t.Helper()
	s, err := newStore(m, "host", dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

var lastOwner atomic.Uint64

func request(key string) quorum.Request {
	n := lastOwner.Add(1)
	r := quorum.Request{Key: key, TTL: 10 * time.Second, MaxTTL: maxTTL, Set: set, Limit: 10 * time.Second}
	r.Owner.Attempt = 1
	for i := range 8 {
		r.Owner.ID[i] = byte(n >> (8 * i))
	}
	return r
}

func acquire(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Acquire(context.Background(), r)
	if err != nil {
		t.Fatalf("acquire %q: %v", r.Key, err)
	}
	return g
}

func wantHeld(t testing.TB, s quorum.Store, key string) {
	t.Helper()
	if _, err := s.Acquire(context.Background(), request(key)); !errors.Is(err, quorum.ErrHeld) {
		t.Fatalf("acquire %q beside its holder: %v, want ErrHeld", key, err)
	}
}

func release(t testing.TB, s quorum.Store, r quorum.Request) {
	t.Helper()
	if err := s.Release(context.Background(), r); err != nil {
		t.Fatalf("release %q: %v", r.Key, err)
	}
}

//go:build linux

package sqlitestore

import (
	"database/sql"
	"errors"
	"fmt"
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

// journals are the modes in which a database is tried.
var journals = []string{"wal", "delete"}

func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "locks.db") }

// world is this machine with another clock.
func world(t testing.TB, c clock.Clock) *machine {
	t.Helper()
	m, err := thisMachine()
	if err != nil {
		t.Fatal(err)
	}
	m.clock = c
	return m
}

// open opens a store by its path, in quarantine where the file is new.
func open(t testing.TB, m *machine, path string) *Store {
	t.Helper()
	s, err := openPath(t.Context(), m, "host", path)
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

// fresh opens a store in a new file and declares it new.
func fresh(t testing.TB, c clock.Clock) *Store {
	t.Helper()
	s := open(t, world(t, c), newPath(t))
	declareNew(t, s)
	return s
}

// declareNew ends the quarantine that every file begins with.
func declareNew(t testing.TB, s *Store) {
	t.Helper()
	r := request("")
	step, err := s.ReadStep(t.Context(), r)
	if err != nil || step.Quarantine == "" {
		t.Fatalf("a store that was never used: %+v, %v; want it in quarantine", step, err)
	}
	if err := s.Raise(t.Context(), r, quorum.Raise{Quarantine: step.Quarantine, Fresh: true}); err != nil {
		t.Fatal(err)
	}
}

// database opens a database in a journal mode, as a program of another's would.
func database(t testing.TB, path, journal string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(5000)", path))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if journal != "" {
		run(t, db, "PRAGMA journal_mode = "+journal)
	}
	return db
}

func run(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func one[T any](t testing.TB, db *sql.DB, query string, args ...any) (value T) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

var lastOwner atomic.Uint64

func request(key string) quorum.Request {
	n := lastOwner.Add(1)
	r := quorum.Request{Key: key, TTL: 10 * time.Second, MaxTTL: maxTTL, Set: set, Limit: 10 * time.Second, Label: "tester"}
	r.Owner.Attempt = 1
	for i := range 8 {
		r.Owner.ID[i] = byte(n >> (8 * i))
	}
	return r
}

func acquire(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire %q: %v", r.Key, err)
	}
	return g
}

func release(t testing.TB, s quorum.Store, r quorum.Request) {
	t.Helper()
	if err := s.Release(t.Context(), r); err != nil {
		t.Fatalf("release %q: %v", r.Key, err)
	}
}

func wantHeld(t testing.TB, s quorum.Store, key string) {
	t.Helper()
	if _, err := s.Acquire(t.Context(), request(key)); !errors.Is(err, quorum.ErrHeld) {
		t.Fatalf("acquire %q beside its holder: %v, want ErrHeld", key, err)
	}
}

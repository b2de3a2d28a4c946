//go:build linux

package sqlitestore

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
)

// maxTTL and set are those of every request of these tests.
const (
	maxTTL = time.Minute
	set    = quorum.Fingerprint(7)
)

// foreignTimeout is what a program of another's lets SQLite wait for a lock.
const foreignTimeout = time.Minute

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
	acceptance.DeclareNew(t, s, request(""))
	return s
}

// database opens a database in a journal mode, as a program of another's would.
func database(t testing.TB, path, journal string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=busy_timeout(%d)", path, foreignTimeout.Milliseconds()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if journal != "" {
		run(t, db, "PRAGMA journal_mode = "+journal)
	}
	return db
}

// run waits for whoever else writes in the file, such as a call that goes on
// behind the test.
func run(t testing.TB, db *sql.DB, query string, args ...any) {
	t.Helper()
	var err error
	acceptance.Poll(t, 10*time.Second, query, func() bool {
		_, err = db.ExecContext(t.Context(), query, args...)
		return err == nil || !strings.Contains(err.Error(), "SQLITE_BUSY")
	})
	if err != nil {
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

func request(key string) quorum.Request {
	return quorum.Request{
		Key: key, Owner: acceptance.Owner(), TTL: 10 * time.Second, MaxTTL: maxTTL, Set: set, Limit: 10 * time.Second, Label: "tester",
	}
}

// brief is a request with a limit that a call which waits reaches soon.
func brief(key string) quorum.Request {
	r := request(key)
	r.Limit = 200 * time.Millisecond
	return r
}

func acquire(t testing.TB, s quorum.Store, key string) (quorum.Request, quorum.Grant) {
	t.Helper()
	r := request(key)
	return r, acceptance.MustAcquire(t, s, r)
}

// pair acquires and releases.
func pair(t testing.TB, s quorum.Store, key string) quorum.Grant {
	t.Helper()
	r, g := acquire(t, s, key)
	acceptance.MustRelease(t, s, r)
	return g
}

func wantHeld(t testing.TB, s quorum.Store, key string) {
	t.Helper()
	if _, err := s.Acquire(t.Context(), request(key)); !errors.Is(err, quorum.ErrHeld) {
		t.Fatalf("acquire %q beside its holder: %v, want ErrHeld", key, err)
	}
}

// wantFailure fails unless err says so, matches is, and counts as not sent.
func wantFailure(t testing.TB, err, is error, says string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), says) || is != nil && !errors.Is(err, is) {
		t.Errorf("error %v, want one that says %q and is %v", err, says, is)
	}
	acceptance.WantOutcome(t, err, quorum.OutcomeUndelivered)
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error %q is not one line", err)
	}
}

func wantQuarantine(t testing.TB, s quorum.Store) {
	t.Helper()
	_, err := s.Acquire(t.Context(), request("is it voting?"))
	acceptance.WantOutcome(t, err, quorum.OutcomeQuarantined)
}

// rows counts the names that the store keeps.
func rows(t testing.TB, s *Store) int {
	t.Helper()
	return one[int](t, s.file.db, "SELECT count(*) FROM quorum_lock")
}

//go:build linux

package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
)

func TestF037StoresOfOneProcessExcludeEachOther(t *testing.T) {
	a := fresh(t, clock.System())
	b := open(t, world(t, clock.System()), a.file.path)
	r, _ := acquire(t, a, "report")
	wantHeld(t, b, "report")
	acceptance.MustRelease(t, a, r)
	acquire(t, b, "report")
}

func TestServerIsTheFile(t *testing.T) {
	a := fresh(t, clock.System())
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(a.file.path, link); err != nil {
		t.Fatal(err)
	}
	_, first := acquire(t, a, "a")
	_, again := acquire(t, open(t, world(t, clock.System()), link), "b")
	_, other := acquire(t, fresh(t, clock.System()), "a")
	if first.Server == "" || first.Server != again.Server || first.Server == other.Server {
		t.Errorf("servers %q, %q and %q; want the first two equal", first.Server, again.Server, other.Server)
	}
}

func TestR45FileOfAnotherMemberIsAMismatch(t *testing.T) {
	a := fresh(t, clock.System())
	acquire(t, a, "report")
	b, err := New(t.Context(), "another", a.file.db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Acquire(t.Context(), request("report")); !errors.Is(err, quorum.ErrMismatch) {
		t.Errorf("acquire as another member: %v, want ErrMismatch", err)
	}
}

func TestF034OpeningTouchesNothing(t *testing.T) {
	s := fresh(t, clock.System())
	r, _ := acquire(t, s, "report")
	before := one[string](t, s.file.db, "SELECT held FROM quorum_lock")
	for range 20 {
		open(t, world(t, clock.System()), s.file.path)
	}
	if after := one[string](t, s.file.db, "SELECT held FROM quorum_lock"); after != before {
		t.Error("the holder's row was written")
	}
	acceptance.MustExtend(t, s, r)
}

// A new file may be one whose predecessor was removed while locks were held.
func TestR46NewFileIsInQuarantine(t *testing.T) {
	now := &clock.Manual{}
	s := open(t, world(t, now), newPath(t))
	wantQuarantine(t, s)
	now.Advance(maxTTL)
	step, err := s.ReadStep(t.Context(), request(""))
	if err != nil || !step.Over {
		t.Fatalf("after MaxTTL: %+v, %v; want the quarantine's time over", step, err)
	}
	if err := s.Raise(t.Context(), request(""), quorum.Raise{Quarantine: step.Quarantine, Alone: true}); err != nil {
		t.Fatal(err)
	}
	acquire(t, s, "report")
}

func TestR46WhoLosesItsRecordForgot(t *testing.T) {
	for what, spoil := range map[string]func(t *testing.T, s *Store){
		"record deleted": func(t *testing.T, s *Store) { run(t, s.file.db, "DELETE FROM quorum_record") },
		"tables dropped": func(t *testing.T, s *Store) {
			run(t, s.file.db, "DROP TABLE quorum_lock")
			run(t, s.file.db, "DROP TABLE quorum_record")
			_, err := s.Acquire(t.Context(), request("report"))
			wantFailure(t, err, nil, "open the store again")
			if err := s.file.setup(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			now := &clock.Manual{}
			s := fresh(t, now)
			_, last := acquire(t, s, "report")
			spoil(t, s)
			wantQuarantine(t, s)
			now.Advance(maxTTL)
			step, err := s.ReadStep(t.Context(), request(""))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Raise(t.Context(), request(""), quorum.Raise{Quarantine: step.Quarantine, Alone: true}); err != nil {
				t.Fatal(err)
			}
			if _, g := acquire(t, s, "report"); g.Token <= last.Token {
				t.Errorf("token %d after forgetting, want more than %d", g.Token, last.Token)
			}
		})
	}
}

// What people do to a lock that is stuck must not give a token twice.
func TestRowDeletedByHandFreesTheNameAndKeepsItsCounter(t *testing.T) {
	s := fresh(t, clock.System())
	r, first := acquire(t, s, "report")
	acquire(t, s, "other")
	run(t, s.file.db, "DELETE FROM quorum_lock WHERE name = 'report'")
	if _, err := s.Extend(t.Context(), r); !errors.Is(err, quorum.ErrNotHeld) {
		t.Errorf("extend of a vote that was deleted: %v, want ErrNotHeld", err)
	}
	_, second := acquire(t, s, "report")
	if second.Token != first.Token+1 {
		t.Errorf("token %d, want the one after %d", second.Token, first.Token)
	}
	wantHeld(t, s, "other")
	run(t, s.file.db, "DELETE FROM quorum_lock")
	if g := pair(t, s, "report"); g.Token != second.Token+1 {
		t.Errorf("token %d after all rows were deleted, want the one after %d", g.Token, second.Token)
	}
	pair(t, s, "other")
}

// A file that was moved away must not go on beside its successor.
func TestReplacedFileIsAnError(t *testing.T) {
	for _, successor := range []bool{false, true} {
		s := fresh(t, clock.System())
		acquire(t, s, "report")
		if err := os.Rename(s.file.path, s.file.path+".old"); err != nil {
			t.Fatal(err)
		}
		if successor {
			open(t, world(t, clock.System()), s.file.path)
		}
		_, err := s.Acquire(t.Context(), request("report"))
		wantFailure(t, err, errReplaced, s.file.path)
	}
}

// SQLite finds a journal by the file's name, so of two names for one file each
// would have its own, and two processes would both hold a lock.
func TestR45FileWithTwoNamesIsRefused(t *testing.T) {
	path, link := newPath(t), newPath(t)
	if _, err := prepare(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, link} {
		_, err := openPath(t.Context(), world(t, clock.System()), "host", name)
		if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), "2 names") {
			t.Errorf("open %s: %v, want a refusal that counts its names", name, err)
		}
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	open(t, world(t, clock.System()), path)
}

// A copy knows what was held when it was made, and no more.
func TestR46CopyOfAFileIsAnotherStoreThatForgot(t *testing.T) {
	s := fresh(t, clock.System())
	pair(t, s, "report")
	path := newPath(t)
	run(t, s.file.db, "VACUUM INTO ?1", path)
	wantQuarantine(t, open(t, world(t, clock.System()), path))
	pair(t, s, "report")
}

func TestRowsDoNotGrowWithNamesEverUsed(t *testing.T) {
	now := &clock.Manual{}
	s := fresh(t, now)
	most := 0
	for i := range 300 {
		pair(t, s, fmt.Sprint("job ", i))
		now.Advance(50 * time.Second) // some 19 of them rest at any time
		if i%25 == 24 {
			most = max(most, rows(t, s))
		}
	}
	if most > 100 {
		t.Errorf("up to %d rows with 19 names in use", most)
	}
	acquire(t, s, "held")
	wantHeld(t, s, "held")
}

func TestDroppedNameGoesOnAboveItsTokens(t *testing.T) {
	now := &clock.Manual{}
	s := fresh(t, now)
	var last quorum.Grant
	for range 10 {
		last = pair(t, s, "report")
	}
	now.Advance(20 * time.Minute)
	for i := 0; i < 50 && rows(t, s) > i; i++ {
		pair(t, s, fmt.Sprint("other ", i))
	}
	if n := one[int](t, s.file.db, "SELECT count(*) FROM quorum_lock WHERE name = 'report'"); n != 0 {
		t.Fatal("the idle name is still there")
	}
	if g := pair(t, s, "report"); g.Token <= last.Token {
		t.Errorf("token %d after the name was dropped, want more than %d", g.Token, last.Token)
	}
}

// A connection is given back as it was taken.
func TestSettingsOfTheConnectionStay(t *testing.T) {
	db := database(t, newPath(t), "wal")
	db.SetMaxOpenConns(1)
	run(t, db, "PRAGMA synchronous = NORMAL")
	s, err := New(t.Context(), "host", db)
	if err != nil {
		t.Fatal(err)
	}
	acceptance.DeclareNew(t, s, request(""))
	acquire(t, s, "report")
	wantHeld(t, s, "report")
	for pragma, want := range map[string]int{"busy_timeout": int(foreignTimeout.Milliseconds()), "synchronous": normal} {
		if got := one[int](t, db, "PRAGMA "+pragma); got != want {
			t.Errorf("%s is %d after calls, want %d as before", pragma, got, want)
		}
	}
	if err := s.Close(); err != nil || db.PingContext(t.Context()) != nil {
		t.Errorf("Close closed the database of its user: %v", err)
	}
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	_, err = s.Acquire(t.Context(), brief("another"))
	wantFailure(t, err, context.DeadlineExceeded, "waiting for one of the 1 connections")
}

func TestNewRefusesWhatIsNoFile(t *testing.T) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for what, err := range map[string]error{
		"in memory":    errorOf(New(t.Context(), "host", db)),
		"no name":      errorOf(New(t.Context(), "", db)),
		"no database":  errorOf(New(t.Context(), "host", nil)),
		"no path":      errorOf(Open(t.Context(), "host", "")),
		"empty option": errorOf(New(t.Context(), "host", database(t, newPath(t), ""), Option{})),
	} {
		if !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%s: %v, want ErrInvalidOption", what, err)
		}
	}
	if _, err := Open(t.Context(), "host", filepath.Join(t.TempDir(), "no", "file.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v, want os.ErrNotExist", err)
	}
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("no database\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), "host", text); err == nil || !strings.Contains(err.Error(), "none of SQLite's") {
		t.Errorf("a text: %v, want it refused", err)
	}
}

func errorOf(_ *Store, err error) error { return err }

//go:build linux

package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
)

func over(t *testing.T, db *sql.DB) *Store {
	t.Helper()
	s, err := New(t.Context(), "host", db)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A program that keeps a transaction open is told of, and the wait for it ends.
func TestForeignTransactionBoundsACall(t *testing.T) {
	for _, journal := range journals {
		t.Run(journal, func(t *testing.T) {
			path := newPath(t)
			s := over(t, database(t, path, journal))
			acceptance.DeclareNew(t, s, request(""))
			r, _ := acquire(t, s, "report")
			foreign := database(t, path, "")
			foreign.SetMaxOpenConns(1)
			run(t, foreign, "BEGIN IMMEDIATE")
			began := time.Now()
			_, err := s.Acquire(t.Context(), brief("other"))
			wantFailure(t, err, context.DeadlineExceeded, "find the program that keeps one open")
			if took := time.Since(began); took > foreignTimeout/2 {
				t.Errorf("a call with a limit of %v took %v: SQLite waited, and for its own time-out", brief("").Limit, took)
			}
			if st, err := s.Inspect(t.Context(), r); err != nil || len(st.Holders) != 1 {
				t.Errorf("inspect beside a transaction: %+v, %v; want the holder", st, err)
			}
			run(t, foreign, "ROLLBACK")
			acceptance.MustExtend(t, s, r)
			acquire(t, s, "other")
		})
	}
}

// Without WAL a reader keeps a commit from being made. What is not made in time
// is not made later either.
func TestForeignReaderBoundsACommit(t *testing.T) {
	path := newPath(t)
	s := over(t, database(t, path, "delete"))
	acceptance.DeclareNew(t, s, request(""))
	pair(t, s, "report")
	foreign := database(t, path, "")
	foreign.SetMaxOpenConns(1)
	run(t, foreign, "BEGIN")
	one[int](t, foreign, "SELECT count(*) FROM quorum_lock")
	_, err := s.Acquire(t.Context(), brief("report"))
	wantFailure(t, err, context.DeadlineExceeded, "find the program that keeps one open")
	run(t, foreign, "COMMIT")
	if st, err := s.Inspect(t.Context(), request("report")); err != nil || len(st.Holders) != 0 {
		t.Fatalf("inspect: %+v, %v; want no holder", st, err)
	}
	acquire(t, s, "report")
}

func TestFullDiskAndReadOnlyFile(t *testing.T) {
	s := fresh(t, clock.System())
	pair(t, s, "report")
	path := s.file.path
	pages := one[int](t, s.file.db, "PRAGMA page_count")
	crowded, err := sql.Open("sqlite", fmt.Sprintf("file:%s?_pragma=max_page_count(%d)", path, pages))
	if err != nil {
		t.Fatal(err)
	}
	defer crowded.Close()
	small := over(t, crowded)
	var failed error
	for i := 0; failed == nil && i < 100; i++ {
		r := request(fmt.Sprint(strings.Repeat("k", 500), i))
		_, failed = small.Acquire(t.Context(), r)
	}
	if failed == nil || !strings.Contains(failed.Error(), "the disk is full; make room") {
		t.Errorf("100 long names in %d pages: %v, want a full disk", pages, failed)
	}
	if o := quorum.OutcomeOf(failed); o != quorum.OutcomeUndelivered && o != quorum.OutcomeUnknown {
		t.Errorf("a full disk counts as %v", o)
	}
	r := request("report")
	if _, err := small.Acquire(t.Context(), r); err == nil {
		acceptance.MustRelease(t, small, r) // what fits still works, or is refused whole
	}

	readOnly, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer readOnly.Close()
	_, err = over(t, readOnly).Acquire(t.Context(), request("report"))
	wantFailure(t, err, nil, "this user may not write the file")
	acquire(t, s, "report")
}

func TestDamagedRowIsAnErrorAndNeverContention(t *testing.T) {
	for what, damage := range map[string]string{
		"not JSON":         "UPDATE quorum_lock SET held = 'pid 4711'",
		"half":             "UPDATE quorum_lock SET held = substr(held, 1, length(held) / 2)",
		"token above":      "UPDATE quorum_lock SET counter = 1",
		"no counter":       "UPDATE quorum_lock SET counter = NULL",
		"mode of nobody":   "UPDATE quorum_lock SET held = replace(held, '\"Mode\":0', '\"Mode\":9')",
		"twice":            "UPDATE quorum_lock SET held = replace(held, '}],', '},' || json_extract(held, '$.Votes[0]') || '],')",
		"ended by nothing": "UPDATE quorum_lock SET held = replace(held, '\"Last\":0', '\"Last\":7')",
	} {
		t.Run(what, func(t *testing.T) {
			s := fresh(t, clock.System())
			acquire(t, s, "report")
			held := one[string](t, s.file.db, "SELECT held FROM quorum_lock")
			run(t, s.file.db, damage)
			_, err := s.Acquire(t.Context(), request("report"))
			wantFailure(t, err, errDamaged, `the row of "report" in quorum_lock cannot be used`)
			if !strings.Contains(err.Error(), "delete the row") || strings.Contains(err.Error(), held) {
				t.Errorf("%v; want what to do, and no owner", err)
			}
			acquire(t, s, "other")
			// The way out that the error names.
			run(t, s.file.db, "DELETE FROM quorum_lock WHERE name = 'report'")
			acquire(t, s, "report")
		})
	}
}

func TestDamagedRecordIsAnError(t *testing.T) {
	for what, text := range map[string]string{"not JSON": "pid 4711", "of another version": `{"Format":2}`} {
		t.Run(what, func(t *testing.T) {
			s := fresh(t, clock.System())
			acquire(t, s, "report")
			run(t, s.file.db, "UPDATE quorum_record SET record = ?1", text)
			_, err := s.Acquire(t.Context(), request("report"))
			wantFailure(t, err, nil, "the row of quorum_record cannot be used")
			run(t, s.file.db, "DELETE FROM quorum_record")
			wantQuarantine(t, s)
		})
	}
}

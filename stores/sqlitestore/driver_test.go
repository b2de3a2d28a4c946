//go:build linux

package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modernc.org/sqlite"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
)

// spoiled is the driver with a wrapper around each connection, which may do
// something before and after a statement.
type spoiled struct {
	path   string
	before func(statement string) error
	after  func(statement string) error // once it was carried out
}

func (d *spoiled) Driver() driver.Driver { return &sqlite.Driver{} }

func (d *spoiled) Connect(context.Context) (driver.Conn, error) {
	c, err := d.Driver().Open(dataSource(d.path, normal))
	return spoiledConn{c, d}, err
}

type spoiledConn struct {
	driver.Conn
	d *spoiled
}

func (c spoiledConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.d.before != nil {
		if err := c.d.before(query); err != nil {
			return nil, err
		}
	}
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	if err == nil && c.d.after != nil {
		err = c.d.after(query)
	}
	return result, err
}

func (c spoiledConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (d *spoiled) open(t *testing.T, m *machine) *Store {
	t.Helper()
	db := sql.OpenDB(d)
	t.Cleanup(func() { _ = db.Close() })
	s, err := newStore(t.Context(), m, "host", db)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What a power cut must not take is on disk before it is answered, and nothing
// else waits for the disk.
func TestOnlyTheRecordIsSynced(t *testing.T) {
	now := &clock.Manual{}
	owner := fresh(t, now)
	syncs, level := 0, normal
	d := &spoiled{path: owner.file.path, after: func(statement string) error {
		switch statement {
		case "PRAGMA synchronous = 1":
			level = normal
		case "PRAGMA synchronous = 2":
			level = full
		case "COMMIT":
			if level == full {
				syncs++
			}
		}
		return nil
	}}
	took := func() int { defer func() { syncs = 0 }(); return syncs }
	s := d.open(t, world(t, now))
	took()
	pair(t, s, "report")
	if n := took(); n != 1 {
		t.Errorf("the first call of a process waited for the disk %d times, want once: it cannot know that the record is there", n)
	}
	for i := range 100 {
		pair(t, s, fmt.Sprint("report ", i%10))
	}
	if n := took(); n != 0 {
		t.Errorf("100 acquisitions in one step waited for the disk %d times, want never", n)
	}
	now.Advance(5 * time.Minute)
	r, _ := acquire(t, s, "report")
	if n := took(); n != 1 {
		t.Errorf("the call that moved the step waited for the disk %d times, want once", n)
	}
	for range 10 {
		wantHeld(t, s, "report")
	}
	acceptance.MustRelease(t, s, r)
	if n := took(); n != 0 {
		t.Errorf("refusals and a release waited for the disk %d times, want never", n)
	}
	pair(t, owner, "report")
	r = request("report")
	r.Floor = pair(t, owner, "report").Token + 1<<30
	acceptance.MustAcquire(t, owner, r)
	acceptance.MustRelease(t, s, r)
	if n := took(); n != 1 {
		t.Errorf("after another process moved the step: %d waits for the disk, want one", n)
	}
}

// Of a commit that failed nobody knows whether it was made; whatever failed
// before it was not.
func TestFailedCommitIsUnknown(t *testing.T) {
	failing := errors.New("disk I/O error")
	var fails string
	d := &spoiled{path: newPath(t), before: func(statement string) error {
		if fails != "" && strings.HasPrefix(statement, fails) {
			return failing
		}
		return nil
	}}
	s := d.open(t, world(t, clock.System()))
	acceptance.DeclareNew(t, s, request(""))
	for statement, want := range map[string]quorum.Outcome{
		"BEGIN": quorum.OutcomeUndelivered, "INSERT": quorum.OutcomeUndelivered, "COMMIT": quorum.OutcomeUnknown,
	} {
		fails = statement
		_, err := s.Acquire(t.Context(), request("report"))
		acceptance.WantOutcome(t, err, want)
		if !errors.Is(err, failing) {
			t.Errorf("%s fails: %v, want its error", statement, err)
		}
		fails = ""
		pair(t, s, "report") // the connection can still be used, and nothing was kept
	}
	// One that cannot be rolled back is not used again.
	d.before = func(statement string) error {
		if slices.Contains([]string{"COMMIT", "ROLLBACK"}, statement) {
			return failing
		}
		return nil
	}
	_, err := s.Acquire(t.Context(), request("report"))
	acceptance.WantOutcome(t, err, quorum.OutcomeUnknown)
	d.before = nil
	pair(t, s, "report")
}

// TestLostAnswersNeverLetTwoIn has goroutines take one lock, while now and then
// a transaction fails or succeeds without their knowledge.
func TestLostAnswersNeverLetTwoIn(t *testing.T) {
	var mu sync.Mutex
	lost, on := 0, false
	lose := func(statement string) error {
		mu.Lock()
		defer mu.Unlock()
		if on && statement == "COMMIT" && rand.IntN(8) == 0 {
			lost++
			return errors.New("disk I/O error")
		}
		return nil
	}
	d := &spoiled{path: newPath(t), before: lose, after: lose}
	l, err := quorum.New(d.open(t, world(t, clock.System())),
		quorum.TTL(2*time.Second), quorum.MaxTTL(2*time.Second), quorum.CallLimit(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	on = true
	var guard acceptance.Guard
	var wait sync.WaitGroup
	const workers, rounds = 6, 15
	for range workers {
		wait.Go(func() {
			for range rounds {
				lease, err := l.Acquire(t.Context(), "job")
				if err != nil {
					t.Error(err)
					return
				}
				guard.Enter(lease.Token())
				_, _ = l.Inspect(t.Context(), "job") // so that another one may come in
				guard.Leave()
				_ = lease.Release(t.Context()) // its answer may be lost as well
			}
		})
	}
	wait.Wait()
	guard.Judge(t, workers*rounds)
	mu.Lock()
	defer mu.Unlock()
	if lost == 0 {
		t.Error("no answer was lost")
	}
	t.Logf("%d answers were lost", lost)
}

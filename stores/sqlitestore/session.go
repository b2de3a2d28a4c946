package sqlitestore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Levels of PRAGMA synchronous.
const (
	normal = 1
	full   = 2
)

// session is a connection for the length of one call.
type session struct {
	conn *sql.Conn
	// ctx is the call's without its end. Nothing that is done with it waits for
	// anybody, and a driver that interrupts a statement leaves its outcome open.
	ctx     context.Context
	restore []string // the connection's own settings
	full    bool     // its commits wait for the disk
	spoiled bool     // the connection is in no state to be used again
}

// connect takes a connection that does not wait by itself for locks: SQLite
// would not heed the call's context.
func (f *file) connect(ctx context.Context) (*session, error) {
	s := &session{ctx: context.WithoutCancel(ctx)}
	err := await(ctx, func() (err error) {
		s.conn, err = f.db.Conn(ctx) // one that has to be made may need a lock
		return err
	})
	if stats := f.db.Stats(); err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("waiting for one of the %d connections of the *sql.DB, of which %d are in use: %w",
			stats.MaxOpenConnections, stats.InUse, err)
	}
	if err != nil {
		return nil, err
	}
	if err := s.set("busy_timeout", func(int) int { return 0 }); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// set changes a setting until the end of the session.
func (s *session) set(pragma string, want func(have int) int) error {
	var have int
	err := s.conn.QueryRowContext(s.ctx, "PRAGMA "+pragma).Scan(&have)
	if to := want(have); err == nil && to != have {
		s.restore = append(s.restore, fmt.Sprintf("PRAGMA %s = %d", pragma, have))
		err = s.exec(fmt.Sprintf("PRAGMA %s = %d", pragma, to))
	}
	return err
}

func (s *session) exec(query string, args ...any) error {
	_, err := s.conn.ExecContext(s.ctx, query, args...)
	return err
}

func (s *session) close() {
	for _, setting := range s.restore {
		if err := s.exec(setting); err != nil {
			s.spoiled = true
		}
	}
	s.restore = nil
	if s.spoiled {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	}
	_ = s.conn.Close()
}

// begin takes the one place of who may write.
func (s *session) begin(ctx context.Context) error {
	return await(ctx, func() error { return s.exec("BEGIN IMMEDIATE") })
}

// commit ends a transaction. In a journal mode other than WAL it waits for who
// reads. Where it failed for a lock that it waited for, sure is true: nothing
// was done.
func (s *session) commit(ctx context.Context) (sure bool, err error) {
	err = await(ctx, func() error { return s.exec("COMMIT") })
	if err != nil {
		sure = isBusy(err)
		s.rollback()
	}
	return sure, err
}

// rollback ends a transaction, unless SQLite has.
func (s *session) rollback() {
	if err := s.exec("ROLLBACK"); err != nil && !strings.Contains(err.Error(), "no transaction is active") {
		s.spoiled = true // closing it rolls back
	}
}

// A lock is polled: the kernel tells nobody when it is free.
const (
	pollFirst = 50 * time.Microsecond
	pollMost  = 5 * time.Millisecond
)

// await does f again while it fails for a lock of another connection, for as
// long as ctx lasts.
func await(ctx context.Context, f func() error) error {
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		err := f()
		if err == nil || !isBusy(err) {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: %w", err, context.Cause(ctx))
		}
	}
}

// fullSync has every commit of the session wait for the disk.
func (s *session) fullSync() error {
	s.full = true
	return s.set("synchronous", func(have int) int { return max(have, full) })
}

// Package sqlitestore keeps votes in a SQLite database, for the processes of
// one machine.
//
//	store, err := sqlitestore.Open(ctx, "host", "/var/lib/report/locks.db")
//
// [Open] makes a file of its own for the locks; [New] takes a *sql.DB that you
// have, of any driver. Leases run on the clock that counts the machine's uptime
// and sleep, so that turning the wall clock neither frees nor keeps a lock. A
// reboot ends all leases at once, and tokens go on above those given before. A
// killed process leaves a lease that ends at its TTL, and nothing else.
//
// # Limits
//
// SQLite lets one transaction write at a time: a transaction of your own that
// is open on the file for longer than a call's limit keeps every lock from
// being taken or renewed, which is why the locks should have a file of their
// own. A file with a second name, a hard link, is refused when it is opened:
// SQLite finds a journal by the name, so that who opens one would not see what
// who opened the other has committed. The file must be on a file system of this machine, see [Store.Advice],
// and all processes must see one boot id and one uptime, as containers of one
// kernel do, unless they are given a time namespace of their own. A backup that
// is written over the file is not noticed: say so with Locker.Forgotten, or
// quorum init --forgotten. Only Linux has all that this needs; elsewhere New
// answers [quorum.ErrUnsupported].
package sqlitestore

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/modelstore"
)

// minTTL leaves room for a call that has to wait for the disk.
const minTTL = 10 * time.Millisecond

// Store is a SQLite database as a [quorum.Store]. It is safe for concurrent
// use, and so is the file, by any number of Stores in any number of processes.
// It starts no goroutine.
type Store struct {
	*modelstore.Store
	file *file
}

var (
	_ quorum.Adviser   = (*Store)(nil)
	_ quorum.HighWater = (*Store)(nil)
	_ quorum.Inspector = (*Store)(nil)
	_ quorum.Watcher   = (*Store)(nil)
)

// Option is a setting of [New] and [Open].
type Option struct{ apply func(*machine) }

// WithClock replaces the machine's clock, for tests. All processes that use the
// file must read one clock; [clock.Go] is none, since each process has its own.
func WithClock(c clock.Clock) Option {
	return Option{func(m *machine) { m.clock = c }}
}

// New keeps votes in the main database of db, which must be a file, in the
// tables quorum_record and quorum_lock; it makes them if they are not there and
// changes no lock. name is the member's name in its set. ctx bounds New alone.
//
// Each call takes a connection of db for as long as it lasts, and leaves the
// connection's settings as they were. With one connection in all
// (SetMaxOpenConns(1)) a call waits for your own transactions, and must not be
// made from within one. The Store never closes db.
//
// A database that has no record of the store counts as one that forgot: it is
// in quarantine for MaxTTL, unless Locker.Init says that it is new.
func New(ctx context.Context, name string, db *sql.DB, opts ...Option) (*Store, error) {
	m, err := thisMachine()
	if err != nil {
		return nil, fmt.Errorf("sqlite store %s: %w", name, err)
	}
	return newStore(ctx, m, name, db, opts...)
}

func newStore(ctx context.Context, m *machine, name string, db *sql.DB, opts ...Option) (*Store, error) {
	if name == "" || db == nil {
		return nil, fmt.Errorf("%w: a SQLite store needs a name (%q) and a database", quorum.ErrInvalidOption, name)
	}
	for _, o := range opts {
		if o.apply == nil {
			return nil, fmt.Errorf("%w: an Option made by no function of this package", quorum.ErrInvalidOption)
		}
		o.apply(m)
	}
	f, err := openFile(ctx, m, name, db)
	if err != nil {
		return nil, err
	}
	limits := quorum.Limits{
		MinTTL:  minTTL,
		Grain:   time.Microsecond,
		Reach:   quorum.ReachHost,
		Shares:  true,
		Watches: true,
		Queues:  true,
	}
	return &Store{modelstore.New(name, limits, f.server, f), f}, nil
}

// Advice says what about the file endangers locks, a sentence each; it is empty
// for a local file.
func (s *Store) Advice() []string { return slices.Clone(s.file.advice) }

// Close closes what [Open] opened, after the calls that are under way. Leases
// stand until their time is over; calls after it fail. The database of [New] is
// left alone, and there Close does nothing.
func (s *Store) Close() error {
	if !s.file.owned {
		return nil
	}
	return s.file.db.Close()
}

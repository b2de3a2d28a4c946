package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/platform"
)

// machine is what the store needs of the operating system. It is a value, so
// that a test can reboot and turn the wall clock.
type machine struct {
	boot    string      // changes with every boot, and with nothing else
	clock   clock.Clock // one for all processes of this boot, and counts sleep
	wall    func() time.Time
	network func(dir *os.File) string // name of a network file system, or ""
}

func thisMachine() (*machine, error) {
	boot, err := platform.BootID()
	if err != nil {
		return nil, err
	}
	return &machine{boot: boot, clock: clock.Machine(), wall: time.Now, network: platform.Network}, nil
}

var errReplaced = errors.New("the file was removed or replaced by another since it was opened; " +
	"locks in it can no longer be told: open the store again")

var errJournal = errors.New("the journal beside the file (-wal) was removed or replaced while the file was open; " +
	"locks in it can no longer be told: end all processes that have it open, and tell the set by quorum init --forgotten")

// file is the database and the file that it is in.
//
// No part of this package opens that file, but one just made: closing any
// descriptor of it would drop the locks that SQLite has on it in this process.
type file struct {
	*machine
	store  string // the store's name
	db     *sql.DB
	owned  bool // db is the store's own
	path   string
	self   fs.FileInfo // the file as it was opened
	server string
	advice []string
	remote bool // other machines may use it

	// turn is held by the call that writes. SQLite has one writer at a time, and
	// those of a process then need not poll for it.
	turn   chan struct{}
	synced record // one that is on disk
	cursor string // where the sweep goes on
	// journals are those that connections had when they wrote first, see sameJournal.
	journals map[any]fs.FileInfo

	parsed atomic.Pointer[parsed]
}

// openFile finds the file of a database, and makes the tables.
func openFile(ctx context.Context, m *machine, store string, db *sql.DB) (*file, error) {
	f := &file{machine: m, store: store, db: db, turn: make(chan struct{}, 1)}
	err := f.find(ctx)
	if err == nil {
		err = f.setup(ctx)
	}
	if err != nil {
		return nil, f.wrap(err)
	}
	return f, nil
}

func (f *file) find(ctx context.Context) error {
	s, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	err = await(ctx, func() error {
		return s.conn.QueryRowContext(s.ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&f.path)
	})
	if err != nil {
		return err
	}
	if f.path == "" {
		return fmt.Errorf("%w: a database in memory or a temporary one, where each connection has its own; "+
			"use a memory store", quorum.ErrInvalidOption)
	}
	if f.self, err = os.Stat(f.path); err != nil {
		return err
	}
	// SQLite finds the journal by the name of the file: two processes with two
	// names for it would each see its own commits alone, and both hold a lock.
	// One that opens while there is one name has that name.
	if n := platform.Links(f.self); n > 1 {
		return fmt.Errorf("%w: the file has %d names (hard links), and SQLite finds its journal by the name: "+
			"remove the others, or copy the file", quorum.ErrInvalidOption, n)
	}
	f.server = "sqlite:" + platform.Identity(f.self)
	dir, err := os.Open(filepath.Dir(f.path))
	if err != nil {
		return err
	}
	defer dir.Close()
	if fsType := f.network(dir); fsType != "" {
		f.remote = true
		f.advice = append(f.advice, fmt.Sprintf("%s is on a network file system (%s), where SQLite's locks may not work: "+
			"locks in it are for one machine; with two it stays in quarantine, and after a reboot it is in quarantine for MaxTTL",
			f.path, fsType))
	}
	return nil
}

// current reports an error unless the path still names the file. One that was
// moved away must not go on beside its successor.
func (f *file) current() error {
	if there, err := os.Stat(f.path); err != nil || !os.SameFile(there, f.self) {
		return errReplaced
	}
	return nil
}

// mostJournals is for how many connections a journal is kept; beyond, they are
// noted anew.
const mostJournals = 64

// sameJournal reports an error if the journal of WAL mode, which a connection
// keeps open, was removed under it: whoever opens the file later makes another,
// and neither sees what the other commits. That is known of the connections that
// [Open] made. The caller has the turn and is in a transaction.
func (f *file) sameJournal(s *session) error {
	if !f.owned {
		return nil
	}
	there, err := os.Stat(f.path + "-wal")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return s.conn.Raw(func(conn any) error {
		had, known := f.journals[conn]
		switch {
		case !known && there != nil:
			if f.journals == nil || len(f.journals) >= mostJournals {
				f.journals = map[any]fs.FileInfo{}
			}
			f.journals[conn] = there
		case known && (there == nil || !os.SameFile(had, there)):
			return errJournal
		}
		return nil
	})
}

func (f *file) wrap(err error) error {
	where := f.path
	if where != "" {
		where = " in " + where
	}
	return fmt.Errorf("sqlite store %s%s: %w", f.store, where, explain(err))
}

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
	return &machine{boot: boot, clock: clock.System(), wall: time.Now, network: platform.Network}, nil
}

var errReplaced = errors.New("the file was removed or replaced by another since it was opened; " +
	"locks in it can no longer be told: open the store again")

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

func (f *file) wrap(err error) error {
	where := f.path
	if where != "" {
		where = " in " + where
	}
	return fmt.Errorf("sqlite store %s%s: %w", f.store, where, explain(err))
}

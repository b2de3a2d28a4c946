// Package filestore keeps votes in a directory of one machine, for the
// processes of that machine.
//
//	store, err := filestore.New("host", "/var/lib/report/locks")
//
// Leases run on the clock that counts the machine's uptime and sleep, so that
// turning the wall clock neither frees nor keeps a lock. A reboot ends all
// leases at once, and tokens go on above those given before. A killed process
// leaves a lease that ends at its TTL, and nothing else.
//
// # Limits
//
// The directory must be on a file system of this machine: see [Store.Advice].
// All processes must see one boot id and one uptime, as containers of one
// kernel do, unless they are given a time namespace of their own. The disk must
// keep what fsync(2) says it kept; only the record is synced, about once in
// five minutes. Moving the directory away and putting an empty one in its place
// while locks are held is not noticed by programs that start after it; emptying
// it is, where the file system keeps times of birth. Only Linux has all that
// this needs; elsewhere New answers [quorum.ErrUnsupported].
package filestore

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/modelstore"
)

// minTTL leaves room for a call that has to wait for the disk.
const minTTL = 10 * time.Millisecond

// Store is a directory as a [quorum.Store]. It is safe for concurrent use, and
// so is the directory, by any number of Stores in any number of processes.
type Store struct {
	*modelstore.Store
	dir *directory
}

var (
	_ quorum.Adviser   = (*Store)(nil)
	_ quorum.HighWater = (*Store)(nil)
	_ quorum.Inspector = (*Store)(nil)
)

// Option is a setting of [New].
type Option struct{ apply func(*machine) }

// WithClock replaces the machine's clock, for tests. All processes that use the
// directory must read one clock; [clock.Go] is none, since each process has its
// own.
func WithClock(c clock.Clock) Option {
	return Option{func(m *machine) { m.clock = c }}
}

// New opens the directory dir, or makes it with mode 0700, and its parents.
// name is the member's name in its set. It changes no lock that is held there.
//
// The directory must belong to this user, or to root and a group of this
// user's that may read, write and enter it; files are then the group's, with
// mode 0660, else 0600. A directory in which everybody may write is refused,
// and a symbolic link. A directory with anything in it but no record of the
// store, or one that was emptied, counts as a store that forgot: it is in
// quarantine first.
//
// The Store keeps two or three descriptors, closed on exec, until [Store.Close].
func New(name, dir string, opts ...Option) (*Store, error) {
	m, err := thisMachine()
	if err != nil {
		return nil, fmt.Errorf("file store %s: %w", name, err)
	}
	return newStore(m, name, dir, opts...)
}

func newStore(m *machine, name, dir string, opts ...Option) (*Store, error) {
	if name == "" || dir == "" {
		return nil, fmt.Errorf("%w: a file store needs a name (%q) and a directory (%q)", quorum.ErrInvalidOption, name, dir)
	}
	for _, o := range opts {
		if o.apply == nil {
			return nil, fmt.Errorf("%w: an Option made by no function of this package", quorum.ErrInvalidOption)
		}
		o.apply(m)
	}
	d, err := openDirectory(name, dir, m)
	if err != nil {
		return nil, fmt.Errorf("file store %s in %s: %w", name, dir, err)
	}
	limits := quorum.Limits{
		MinTTL: minTTL,
		Grain:  time.Microsecond,
		Reach:  quorum.ReachHost,
		Shares: true,
	}
	return &Store{modelstore.New(name, limits, m.identity(d.self), d), d}, nil
}

// Advice says what about the directory endangers locks, a sentence each; it is
// empty for a local directory on a usual file system.
func (s *Store) Advice() []string { return slices.Clone(s.dir.advice) }

// Close gives back the descriptors, after the call that is under way. Leases
// stand until their time is over; calls after it fail. A second Close does
// nothing.
func (s *Store) Close() error {
	s.dir.turn <- struct{}{}
	defer func() { <-s.dir.turn }()
	if s.dir.closed {
		return nil
	}
	return s.dir.close()
}

// Opener takes DSNs of the form file:/path/of/the/directory, see [quorum.Open].
func Opener() quorum.Opener {
	return quorum.Opener{Schemes: []string{"file"}, Open: openDSN}
}

func openDSN(_ context.Context, dsn *url.URL) (quorum.Store, error) {
	query := dsn.Query()
	name := query.Get("name")
	query.Del("name")
	path := dsn.Path
	if dsn.Opaque != "" {
		relative, err := url.PathUnescape(dsn.Opaque)
		if err != nil {
			return nil, fmt.Errorf("%w: the path of the DSN: %w", quorum.ErrInvalidOption, err)
		}
		path = relative
	}
	switch {
	case len(query) > 0:
		return nil, fmt.Errorf("%w: a file DSN takes no parameter but name", quorum.ErrInvalidOption)
	case dsn.Host != "" && dsn.Host != "localhost":
		return nil, fmt.Errorf("%w: the directory of a file DSN is on this machine, not on %s; "+
			"write file:/path with one slash or three", quorum.ErrInvalidOption, dsn.Host)
	case dsn.User != nil || dsn.Fragment != "":
		return nil, errors.Join(quorum.ErrInvalidOption, errors.New("a file DSN has neither a user nor a fragment"))
	}
	store, err := New(name, path)
	if err != nil {
		return nil, err
	}
	return store, nil
}

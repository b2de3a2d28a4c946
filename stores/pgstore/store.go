package pgstore

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/quorumlock/quorum"
)

// Store is one PostgreSQL database as a member of a quorum. It is safe for
// concurrent use and never closes the handle it was given.
type Store struct {
	name   string
	db     database
	schema string
	text   texts
	limits quorum.Limits
	direct *pgx.ConnConfig // for the watches, or nil
	owned  *pgxpool.Pool   // when Opener made it
	hub    hub

	eager   bool       // set up when something is missing
	setting sync.Mutex // held by who does

	known atomic.Pointer[position]
	hand  atomic.Pointer[[]byte] // where the cleaner goes on
	syncs atomic.Int32           // what Advice says of the server
}

// Each of them is found by quorum.As.
var (
	_ quorum.Store      = (*Store)(nil)
	_ quorum.HighWater  = (*Store)(nil)
	_ quorum.Inspector  = (*Store)(nil)
	_ quorum.Watcher    = (*Store)(nil)
	_ quorum.Membership = (*Store)(nil)
	_ quorum.Adviser    = (*Store)(nil)
	_ io.Closer         = (*Store)(nil)
)

const (
	maxKey   = 512         // bytes
	maxLabel = 256         // bytes
	maxKeep  = time.Minute // of an entry in a queue
)

// New returns the store in the database that pool reaches, under the name that
// all clients know it by. It does no I/O: call [Store.Setup] once for each
// database. Each call takes a connection of the pool for one round trip.
func New(name string, pool *pgxpool.Pool, options ...Option) (*Store, error) {
	if pool == nil {
		return nil, fmt.Errorf("%w: store %s: the pool is nil", quorum.ErrInvalidOption, name)
	}
	return build(name, pooled{pool}, true, false, options)
}

// NewDB is [New] for a *sql.DB. Of pgx's own driver (package stdlib) all is
// known; a client with any other driver is said to double requests, and can
// watch only with [ListenOn].
func NewDB(name string, db *sql.DB, options ...Option) (*Store, error) {
	if db == nil {
		return nil, fmt.Errorf("%w: store %s: the *sql.DB is nil", quorum.ErrInvalidOption, name)
	}
	_, ours := db.Driver().(*stdlib.Driver)
	return build(name, standard{db, ours}, ours, !ours, options)
}

func build(name string, db database, watches, doubles bool, options []Option) (*Store, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: a store needs a name", quorum.ErrInvalidOption)
	}
	s := &Store{name: name, db: db, schema: defaultSchema}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
	}
	s.text = write(s.schema)
	s.known.Store(&position{seen: "0/0"})
	s.hand.Store(new([]byte))
	s.limits = quorum.Limits{
		MinTTL:  time.Millisecond,
		Grain:   time.Microsecond,
		MaxKey:  maxKey,
		Reach:   quorum.ReachCluster,
		Shares:  true,
		Watches: watches || s.direct != nil,
		Queues:  watches || s.direct != nil, // who is told nothing would find its turn by polls
		Forgets: true,                       // at a fail-over
		Doubles: doubles,
	}
	return s, nil
}

// Name implements [quorum.Store].
func (s *Store) Name() string { return s.name }

// Limits implements [quorum.Store].
func (s *Store) Limits() quorum.Limits { return s.limits }

// Close closes the pool that [Opener] made for the store. One that was given to
// [New] or [NewDB] is left open.
func (s *Store) Close() error {
	if s.owned != nil {
		s.owned.Close()
	}
	return nil
}

// Acquire implements [quorum.Store].
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := s.check(verbAcquire, &r); err != nil {
		return quorum.Grant{}, err
	}
	return s.ask(ctx, verbAcquire, &r, kinds[r.Kind])
}

// Extend implements [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := s.check(verbExtend, &r); err != nil {
		return quorum.Grant{}, err
	}
	return s.ask(ctx, verbExtend, &r, "extend")
}

// Release implements [quorum.Store].
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	if err := s.check(verbRelease, &r); err != nil {
		return err
	}
	var entomb int64
	if r.Entomb {
		entomb = max(micros(r.MaxTTL+r.Limit), 1)
	}
	var held, clean bool
	err := s.call(ctx, &r, s.text.release,
		[]any{[]byte(r.Key), r.Owner.ID[:], int64(r.Owner.Attempt), entomb, millis(r.Limit)}, []any{&held, &clean})
	if err != nil {
		return s.wrap(verbRelease, r.Key, err)
	}
	if !held {
		return &quorum.RefusedError{
			Outcome: quorum.OutcomeNotHeld, Clean: clean && !s.limits.Doubles, Server: s.known.Load().server,
		}
	}
	return nil
}

var kinds = [...]string{
	quorum.KindNew: "new", quorum.KindRepair: "repair", quorum.KindConvert: "convert", quorum.KindForce: "force",
}

// verb is what a store is asked, for messages.
type verb string

const (
	verbAcquire verb = "acquire"
	verbExtend  verb = "extend"
	verbRelease verb = "release"
	verbInspect verb = "inspect"
	verbWatch   verb = "watch"
)

// check refuses what no store could do, before anything is sent.
func (s *Store) check(v verb, r *quorum.Request) error {
	var err error
	switch {
	case r.Key == "" || len(r.Key) > maxKey:
		err = fmt.Errorf("%w: %d bytes, where 1 to %d are allowed", quorum.ErrInvalidKey, len(r.Key), maxKey)
	case !utf8.ValidString(r.Key):
		err = fmt.Errorf("%w: %q is not UTF-8", quorum.ErrInvalidKey, r.Key)
	case strings.Contains(r.Key, "\x00"):
		err = fmt.Errorf("%w: %q holds a NUL", quorum.ErrInvalidKey, r.Key)
	case len(r.Label) > maxLabel:
		err = fmt.Errorf("%w: a label of %d bytes, where %d are allowed", quorum.ErrInvalidOption, len(r.Label), maxLabel)
	case v == verbRelease || v == verbWatch:
		return nil
	case r.MaxTTL <= 0:
		err = fmt.Errorf("%w: MaxTTL %v is not positive", quorum.ErrInvalidTTL, r.MaxTTL)
	case v == verbInspect:
		return nil
	case r.TTL <= 0 || r.TTL > r.MaxTTL:
		err = fmt.Errorf("%w: %v for key %q does not lie between 0 and MaxTTL, %v", quorum.ErrInvalidTTL, r.TTL, r.Key, r.MaxTTL)
	case r.Floor < 0 || r.Kind == quorum.KindRepair && r.Floor == 0 && v == verbAcquire:
		err = fmt.Errorf("%w: %v of key %q to the token %d", quorum.ErrInvalidOption, r.Kind, r.Key, r.Floor)
	case int(r.Kind) >= len(kinds) || r.Mode > quorum.ModeShared || r.Wait > quorum.WaitQueue:
		err = fmt.Errorf("%w: kind %d, mode %d or wait %d is not known", quorum.ErrInvalidOption, r.Kind, r.Mode, r.Wait)
	case r.Wait >= quorum.WaitTake && (r.Ticket < 0 || r.Keep <= 0 || r.Keep > maxKeep || r.Claim <= 0 || r.Claim > r.TTL):
		err = fmt.Errorf("%w: ticket %d is below 0, keep %v not between 0 and %v, or claim %v not between 0 and the TTL %v",
			quorum.ErrInvalidOption, r.Ticket, r.Keep, maxKeep, r.Claim, r.TTL)
	default:
		return nil
	}
	return s.unsent(err)
}

// unsent is an error of a request that was not made.
func (s *Store) unsent(err error) error {
	return quorum.Undelivered(fmt.Errorf("postgres store %s: %w", s.name, err))
}

// wrap says what was being done to which key.
func (s *Store) wrap(v verb, key string, err error) error {
	return fmt.Errorf("postgres store %s: %s %q: %w", s.name, v, key, err)
}

// micros rounds up to whole microseconds: a store may give longer, never
// shorter.
func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

// millis is a limit as lock_timeout takes it, at least one; 0 would be none.
func millis(d time.Duration) int64 {
	if d <= 0 {
		d = defaultLimit
	}
	return int64(max(min(d, maxLimit)/time.Millisecond, 1))
}

const (
	defaultLimit = 10 * time.Second // for a call without a limit
	maxLimit     = time.Hour
)

package consulstore

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/modelstore"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// Store is one Consul cluster as a member of a quorum. It is safe for
// concurrent use, and never closes connections of a client it was given.
type Store struct {
	name       string
	client     *api.Client
	prefix     string // ends with a slash
	datacenter string
	limits     quorum.Limits
	owned      io.Closer // the client's connections, when Opener made them

	clock clock.Clock      // how long ago a session was renewed
	wall  func() time.Time // what the step follows
	trial trial            // switches of tests; zero outside of them

	identity identity
	seen     seen
	holds    holds
	spares   spares
	cleaner  modelstore.Background
	lines    [lineCount]chan struct{} // each holds one: calls that lost a race for a name
	waiters  waitlist.Seen
	bells    ringing
	self     string // this client, as the bells of queues know it
}

const lineCount = 64

// Each of them is found by quorum.As.
var (
	_ quorum.Store      = (*Store)(nil)
	_ quorum.HighWater  = (*Store)(nil)
	_ quorum.Inspector  = (*Store)(nil)
	_ quorum.Membership = (*Store)(nil)
	_ quorum.Watcher    = (*Store)(nil)
	_ quorum.Adviser    = (*Store)(nil)
	_ io.Closer         = (*Store)(nil)
)

// trial is what a test may switch off or be told of.
type trial struct {
	blind bool   // transactions do not compare the record
	read  func() // called between the read and the transaction
}

// New returns the store that client reaches, under the name that all clients
// know it by. It does no I/O. What the client adds to its requests, such as a
// token or a namespace of Consul Enterprise, holds for the store as well;
// namespaces and partitions were not tested, and all clients must use the same.
func New(name string, client *api.Client, options ...Option) (*Store, error) {
	s := &Store{
		name: name, client: client, prefix: defaultPrefix + "/", clock: clock.System(), wall: time.Now, self: rand.Text(),
	}
	if name == "" {
		return nil, fmt.Errorf("%w: a store needs a name", quorum.ErrInvalidOption)
	}
	if client == nil {
		return nil, fmt.Errorf("%w: store %s: the client is nil", quorum.ErrInvalidOption, name)
	}
	s.limits = quorum.Limits{
		MinTTL:  sessionMin,
		MaxKey:  maxKey,
		Reach:   quorum.ReachCluster,
		Shares:  true,
		Queues:  true,
		Watches: true,
		Forgets: true, // a disk that was emptied, a backup that was restored
	}
	for i := range s.lines {
		s.lines[i] = make(chan struct{}, 1)
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
	}
	return s, nil
}

const maxKey = 512 // bytes

// local is the clock by which the lines of queues grow old.
func (s *Store) local() model.Time { return model.Time(time.Duration(s.clock.Now()).Microseconds()) }

// Name implements [quorum.Store].
func (s *Store) Name() string { return s.name }

// Limits implements [quorum.Store].
func (s *Store) Limits() quorum.Limits { return s.limits }

// Close ends what the store does in the background, and closes the connections
// that [Opener] made for it. A client that was given to [New] is left as it is.
func (s *Store) Close() error {
	s.cleaner.Close()
	if s.owned == nil {
		return nil
	}
	return s.owned.Close()
}

// Acquire implements [quorum.Store].
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	table, err := s.table(ctx, &call{Store: s, verb: acquire, r: &r})
	if err != nil {
		return quorum.Grant{}, err
	}
	return table.Acquire(ctx, r)
}

// Extend implements [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	table, err := s.table(ctx, &call{Store: s, verb: extend, r: &r})
	if err != nil {
		return quorum.Grant{}, err
	}
	return table.Extend(ctx, r)
}

// Release implements [quorum.Store].
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	began := s.clock.Now()
	c := &call{Store: s, verb: release, r: &r}
	table, err := s.table(ctx, c)
	if err != nil {
		return err
	}
	err = table.Release(ctx, r)
	if c.left != nil {
		s.tidy(ctx, r, c.left, s.clock.Now().Sub(began))
	}
	return err
}

// Inspect implements [quorum.Inspector]. A holder's Left is how long its vote
// may last at most; Since is by the clock of who holds.
func (s *Store) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	table, err := s.table(ctx, &call{Store: s, verb: inspect, r: &r})
	if err != nil {
		return quorum.State{}, err
	}
	return table.Inspect(ctx, r)
}

// ReadStep implements [quorum.HighWater]. Consul does not tell how much of a
// session's time is left, so Left is an estimate.
func (s *Store) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	table, err := s.table(ctx, &call{Store: s, verb: record, r: &r})
	if err != nil {
		return quorum.Step{}, err
	}
	return table.ReadStep(ctx, r)
}

// Raise implements [quorum.HighWater].
func (s *Store) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	table, err := s.table(ctx, &call{Store: s, verb: record, r: &r})
	if err != nil {
		return err
	}
	return table.Raise(ctx, r, o)
}

// Serves implements [quorum.Membership].
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	table, err := s.table(ctx, &call{Store: s, verb: record, r: &r})
	if err != nil {
		return nil, err
	}
	return table.Serves(ctx, r)
}

// Serve implements [quorum.Membership].
func (s *Store) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	table, err := s.table(ctx, &call{Store: s, verb: record, r: &r})
	if err != nil {
		return err
	}
	return table.Serve(ctx, r, from, to)
}

// table is the table of the protocol over one call.
func (s *Store) table(ctx context.Context, c *call) (*modelstore.Store, error) {
	v, r := c.verb, c.r
	if r.MaxTTL > sessionMax {
		return nil, s.unsent(v, r.Key, fmt.Errorf("%w: MaxTTL %v is above 24h, the longest that Consul takes",
			quorum.ErrInvalidTTL, r.MaxTTL))
	}
	server := ""
	if v == record || takes(r.Key) { // any other is refused before anything is sent
		var err error
		if server, err = s.server(ctx, r.Limit); err != nil {
			return nil, s.unsent(v, r.Key, err)
		}
	}
	return modelstore.New(s.name, s.limits, server, c), nil
}

// takes reports whether a key is one that a store takes.
func takes(key string) bool {
	return key != "" && len(key) <= maxKey && utf8.ValidString(key) && !strings.Contains(key, "\x00")
}

// verb is what a call does.
type verb uint8

const (
	acquire verb = iota
	extend
	release
	inspect
	record
)

func (v verb) String() string {
	return [...]string{"acquire", "extend", "release", "inspect", "record of"}[v]
}

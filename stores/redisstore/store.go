package redisstore

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// Store is one Redis server as a member of a quorum. It is safe for concurrent
// use, starts no goroutine, and never closes the client it was given.
type Store struct {
	name   string
	client redis.UniversalClient
	tag    string // the prefix in braces
	runID  string // given by the embedder, or empty
	guard  bool
	limits quorum.Limits
	owned  io.Closer // the client, when Opener made it

	recent   atomic.Pointer[scripts] // the family used last: nearly always the only one
	loading  chan struct{}           // holds one: who holds it may use families
	families map[family]*scripts
}

// Each of them is found by quorum.As.
var (
	_ quorum.Store     = (*Store)(nil)
	_ quorum.HighWater = (*Store)(nil)
	_ quorum.Inspector = (*Store)(nil)
	_ io.Closer        = (*Store)(nil)
)

// New returns the store that client reaches, under the name that all clients
// know it by. It does no I/O. A client of a Redis Cluster or a Ring is refused
// with [quorum.ErrUnsupported].
func New(name string, client redis.UniversalClient, options ...Option) (*Store, error) {
	s := &Store{
		name: name, client: client, tag: "{quorum}", guard: true,
		loading: make(chan struct{}, 1), families: make(map[family]*scripts),
	}
	if name == "" {
		return nil, fmt.Errorf("%w: a store needs a name", quorum.ErrInvalidOption)
	}
	retries := true // a client of a kind that is not known here may do anything
	switch c := client.(type) {
	case nil:
		return nil, fmt.Errorf("%w: store %s: the client is nil", quorum.ErrInvalidOption, name)
	case *redis.ClusterClient, *redis.Ring:
		return nil, fmt.Errorf("%w: store %s: a %T spreads keys over servers; give each store a server of its own",
			quorum.ErrUnsupported, name, client)
	case *redis.Client:
		retries = c.Options().MaxRetries > 0
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
	}
	s.limits = quorum.Limits{
		MinTTL:  time.Millisecond,
		Grain:   time.Microsecond,
		MaxKey:  maxKey,
		Reach:   quorum.ReachCluster,
		Shares:  true,
		Forgets: s.guard,
		Doubles: retries,
	}
	return s, nil
}

const maxKey = 512

// Name implements [quorum.Store].
func (s *Store) Name() string { return s.name }

// Limits implements [quorum.Store].
func (s *Store) Limits() quorum.Limits { return s.limits }

// Close closes the client that [Opener] made for the store. A client that was
// given to [New] is left open.
func (s *Store) Close() error {
	if s.owned == nil {
		return nil
	}
	return s.owned.Close()
}

// Acquire implements [quorum.Store].
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := s.check(&r); err != nil {
		return quorum.Grant{}, err
	}
	if r.Kind == quorum.KindRepair && r.Floor == 0 {
		return quorum.Grant{}, s.invalid("a repair of %q without a token", r.Key)
	}
	reply, at, err := s.eval(ctx, acquire, &r, s.keys(&r), r.Owner.Hex(), r.Owner.Attempt, micros(r.TTL), r.Floor,
		kinds[r.Kind], modes[r.Mode], cut(r.Label))
	return s.grant(&r, reply, at, err)
}

// Extend implements [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := s.check(&r); err != nil {
		return quorum.Grant{}, err
	}
	reply, at, err := s.eval(ctx, extend, &r, s.keys(&r), r.Owner.Hex(), r.Owner.Attempt, micros(r.TTL), r.Floor)
	return s.grant(&r, reply, at, err)
}

// Release implements [quorum.Store]. It works in a full memory too.
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	var entomb int64
	if r.Entomb {
		entomb = max((micros(r.MaxTTL+r.Limit)+999)/1000, 1)
	}
	reply, at, err := s.eval(ctx, release, &r, s.keys(&r), r.Owner.Hex(), r.Owner.Attempt, entomb)
	if err != nil {
		return s.wrap(release, r.Key, err)
	}
	if held, ok := reply.(int64); ok && held == 1 {
		return nil
	}
	return &quorum.RefusedError{
		Outcome: quorum.OutcomeNotHeld,
		Clean:   reply == int64(0) && !s.limits.Doubles,
		Server:  at.runID,
	}
}

var (
	kinds = [...]string{
		quorum.KindNew: "new", quorum.KindRepair: "repair", quorum.KindConvert: "convert", quorum.KindForce: "force",
	}
	modes = [...]string{quorum.Exclusive: "w", quorum.Shared: "r"}
)

// keys are the keys of a name, in the order that the scripts know them by.
func (s *Store) keys(r *quorum.Request) []string {
	return []string{
		s.tag + ":record",
		s.tag + ":vote:" + r.Key,
		s.tag + ":count:" + r.Key,
		s.tag + ":tomb:" + r.Owner.Hex() + ":" + r.Key,
		s.tag + ":read:" + r.Key,
		s.tag + ":ends:" + r.Key,
		s.tag + ":forced:" + r.Key,
	}
}

// check refuses what no store could do, before anything is sent.
func (s *Store) check(r *quorum.Request) error {
	switch {
	case r.Key == "" || len(r.Key) > maxKey:
		return quorum.Undelivered(fmt.Errorf("%w: store %s takes keys of 1 to %d bytes, not of %d",
			quorum.ErrInvalidKey, s.name, maxKey, len(r.Key)))
	case r.MaxTTL <= 0 || r.TTL <= 0 || r.TTL > r.MaxTTL:
		return quorum.Undelivered(fmt.Errorf("%w: store %s: TTL %v of %q is not between 0 and MaxTTL %v",
			quorum.ErrInvalidTTL, s.name, r.TTL, r.Key, r.MaxTTL))
	case r.Floor < 0 || int(r.Kind) >= len(kinds) || int(r.Mode) >= len(modes):
		return s.invalid("floor %d, kind %d or mode %d of %q makes no sense", r.Floor, r.Kind, r.Mode, r.Key)
	}
	return nil
}

func (s *Store) invalid(format string, args ...any) error {
	return quorum.Undelivered(fmt.Errorf("store %s: "+format, append([]any{s.name}, args...)...))
}

// cut keeps labels within what the scripts are meant for.
func cut(label string) string { return label[:min(len(label), 256)] }

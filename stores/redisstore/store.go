package redisstore

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

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
	heeds  bool      // the client watches its context, as far as is known

	policy atomic.Pointer[string] // what the server evicts when its memory is full

	recent   atomic.Pointer[scripts] // the family used last: nearly always the only one
	loading  chan struct{}           // holds one: who holds it may use families
	families map[family]*scripts
}

// Each of them is found by quorum.As.
var (
	_ quorum.Store      = (*Store)(nil)
	_ quorum.HighWater  = (*Store)(nil)
	_ quorum.Inspector  = (*Store)(nil)
	_ quorum.Membership = (*Store)(nil)
	_ quorum.Adviser    = (*Store)(nil)
	_ io.Closer         = (*Store)(nil)
)

// New returns the store that client reaches, under the name that all clients
// know it by. It does no I/O. A client of a Redis Cluster or a Ring is refused
// with [quorum.ErrUnsupported].
func New(name string, client redis.UniversalClient, options ...Option) (*Store, error) {
	s := &Store{
		name: name, client: client, tag: "{" + defaultPrefix + "}", guard: true,
		loading: make(chan struct{}, 1), families: make(map[family]*scripts),
	}
	if name == "" {
		return nil, fmt.Errorf("%w: a store needs a name", quorum.ErrInvalidOption)
	}
	retries := true // a client of a kind that is not known here may do anything
	s.heeds = true
	switch c := client.(type) {
	case nil:
		return nil, fmt.Errorf("%w: store %s: the client is nil", quorum.ErrInvalidOption, name)
	case *redis.ClusterClient, *redis.Ring:
		return nil, fmt.Errorf("%w: store %s: a %T spreads keys over servers; give each store a server of its own",
			quorum.ErrUnsupported, name, client)
	case *redis.Client:
		retries, s.heeds = c.Options().MaxRetries > 0, c.Options().ContextTimeoutEnabled
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

const (
	maxKey   = 512 // bytes
	maxLabel = 256 // bytes
)

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
	if err := s.check(acquire, &r); err != nil {
		return quorum.Grant{}, err
	}
	reply, at, err := s.eval(ctx, acquire, &r, s.keys(&r), r.Owner.Hex(), r.Owner.Attempt, micros(r.TTL), r.Floor,
		kinds[r.Kind], modes[r.Mode], r.Label)
	return s.grant(&r, reply, at, err)
}

// Extend implements [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := s.check(extend, &r); err != nil {
		return quorum.Grant{}, err
	}
	reply, at, err := s.eval(ctx, extend, &r, s.keys(&r), r.Owner.Hex(), r.Owner.Attempt, micros(r.TTL), r.Floor)
	return s.grant(&r, reply, at, err)
}

// Release implements [quorum.Store]. It works in a full memory too.
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	if err := s.check(release, &r); err != nil {
		return err
	}
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
	modes = [...]string{quorum.ModeExclusive: "w", quorum.ModeShared: "r"}
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
	case v == release:
		return nil
	case r.MaxTTL <= 0:
		err = fmt.Errorf("%w: MaxTTL %v is not positive", quorum.ErrInvalidTTL, r.MaxTTL)
	case v == inspect:
		return nil
	case r.TTL <= 0 || r.TTL > r.MaxTTL:
		err = fmt.Errorf("%w: %v for key %q does not lie between 0 and MaxTTL, %v", quorum.ErrInvalidTTL, r.TTL, r.Key, r.MaxTTL)
	case r.Floor < 0 || r.Kind == quorum.KindRepair && r.Floor == 0 && v == acquire:
		err = fmt.Errorf("%w: %v of key %q to the token %d", quorum.ErrInvalidOption, r.Kind, r.Key, r.Floor)
	case int(r.Kind) >= len(kinds) || int(r.Mode) >= len(modes):
		err = fmt.Errorf("%w: kind %d or mode %d is not known", quorum.ErrInvalidOption, r.Kind, r.Mode)
	default:
		return nil
	}
	return s.unsent(err)
}

// unsent is an error of a request that was not made.
func (s *Store) unsent(err error) error {
	return quorum.Undelivered(fmt.Errorf("redis store %s: %w", s.name, err))
}

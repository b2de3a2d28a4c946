package etcdstore

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Store is one etcd cluster as a member of a quorum. It is safe for concurrent
// use, and never closes the client that it was given.
type Store struct {
	name   string
	made   atomic.Pointer[clientv3.Client]
	prefix string
	now    func() model.Time
	opened *opened // where Opener makes the client; nil where it was given

	memory   memory
	lines    lines
	revision atomic.Int64 // the highest that was answered
	gone     atomic.Bool  // the server was seen to have gone back
	advice   advice
	sweeper  sweeper
}

// Each of them is found by quorum.As.
var (
	_ quorum.Store      = (*Store)(nil)
	_ quorum.HighWater  = (*Store)(nil)
	_ quorum.Membership = (*Store)(nil)
	_ quorum.Inspector  = (*Store)(nil)
	_ quorum.Watcher    = (*Store)(nil)
	_ quorum.Adviser    = (*Store)(nil)
	_ io.Closer         = (*Store)(nil)
)

const (
	maxKey   = 512 // bytes
	maxLabel = 256 // bytes
)

var limits = quorum.Limits{
	MinTTL:  time.Second,
	Grain:   time.Second,
	MaxKey:  maxKey,
	Reach:   quorum.ReachCluster,
	Shares:  true,
	Watches: true,
	Queues:  true,
	// etcd persists before it answers. It may be emptied, or restored from a
	// backup, and its record is then missing, or old.
	Forgets: true,
}

// New returns the store that client reaches, under the name that all clients
// know it by. It does no I/O.
func New(name string, client *clientv3.Client, options ...Option) (*Store, error) {
	if client == nil {
		return nil, fmt.Errorf("%w: store %s: the client is nil", quorum.ErrInvalidOption, name)
	}
	s, err := newStore(name, options)
	if err == nil {
		s.made.Store(client)
	}
	return s, err
}

func newStore(name string, options []Option) (*Store, error) {
	s := &Store{
		name: name, prefix: defaultPrefix,
		now:    func() model.Time { return model.Time(time.Now().UnixMicro()) },
		memory: memory{tenures: map[holder]*tenure{}},
	}
	if name == "" {
		return nil, fmt.Errorf("%w: a store needs a name", quorum.ErrInvalidOption)
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
	}
	return s, nil
}

// client is the one to ask. An opened store has it after its first connection.
func (s *Store) client() *clientv3.Client { return s.made.Load() }

// Name implements [quorum.Store].
func (s *Store) Name() string { return s.name }

// Limits implements [quorum.Store].
func (s *Store) Limits() quorum.Limits { return limits }

// Close ends a sweep that is under way, and closes the client that [Opener]
// made for the store. A client that was given to [New] is left open.
func (s *Store) Close() error {
	s.sweeper.close()
	if s.opened == nil {
		return nil
	}
	return s.opened.close()
}

// Acquire implements [quorum.Store].
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	return s.vote(ctx, core.Acquire, r)
}

// Extend implements [quorum.Store].
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	return s.vote(ctx, core.Extend, r)
}

func (s *Store) vote(ctx context.Context, verb core.Verb, r quorum.Request) (quorum.Grant, error) {
	if err := check(verb, &r); err != nil {
		return quorum.Grant{}, s.unsent(err)
	}
	m, err := s.run(ctx, request(verb, &r))
	if err == nil {
		err = s.refusal(m)
	}
	if err != nil {
		return quorum.Grant{}, s.wrap(verb, r.Key, err)
	}
	return m.grant(), nil
}

// Release implements [quorum.Store].
func (s *Store) Release(ctx context.Context, r quorum.Request) error {
	if err := check(core.Release, &r); err != nil {
		return s.unsent(err)
	}
	req := request(core.Release, &r)
	m, err := s.run(ctx, req)
	if err == nil {
		s.memory.drop(holder{req.Key, req.Owner.ID}, 0)
		err = s.refusal(m)
	}
	if err != nil {
		return s.wrap(core.Release, r.Key, err)
	}
	return nil
}

// run carries out a request within its limit, which begins when the client is
// connected: the limit is for the server.
func (s *Store) run(ctx context.Context, req core.Request) (*move, error) {
	ctx, cancel, err := s.bound(ctx, req.Limit)
	if err != nil {
		return nil, err
	}
	defer cancel()
	m, err := s.carry(ctx, req)
	if err != nil {
		return nil, err
	}
	s.left(ctx, m)
	s.advise(ctx)
	if m.record != nil && m.seen.recordMod != 0 && m.record.Step > m.seen.record.Step {
		s.sweep(m.record.Step)
	}
	return m, nil
}

// bound waits for a connection and then sets the limit of a call.
func (s *Store) bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc, error) {
	if err := s.connected(ctx); err != nil {
		return nil, nil, err
	}
	if limit <= 0 {
		limit = longestCall
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	return ctx, cancel, nil
}

// longestCall bounds a call that names no limit.
const longestCall = 10 * time.Second

// wrap says what was being done to which key.
func (s *Store) wrap(verb core.Verb, key string, err error) error {
	if key == "" {
		return fmt.Errorf("etcd store %s: %v: %w", s.name, verb, err)
	}
	return fmt.Errorf("etcd store %s: %v %q: %w", s.name, verb, key, err)
}

// unsent is an error of a request that was not made.
func (s *Store) unsent(err error) error {
	return quorum.Undelivered(fmt.Errorf("etcd store %s: %w", s.name, err))
}

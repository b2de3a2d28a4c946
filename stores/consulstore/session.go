package consulstore

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

// session is one that this client made. It belongs to one attempt of one owner
// on one name: a late end of an older attempt's must not end a younger's vote.
type session struct {
	id  string
	ttl time.Duration
	at  clock.Instant // before it was made or renewed last
}

// lockDelay is how long Consul keeps a key from being locked after a session
// ended that held it. No session locks a key that another one had, so any
// would do; 0 cannot be sent, since the server takes it for 15 s.
const lockDelay = time.Millisecond

// make makes a session. Without checks, because one with the agent's health
// ends when the agent does; what it holds is deleted with it.
func (s *Store) make(ctx context.Context, ttl time.Duration) (*session, error) {
	made := &session{ttl: ttl, at: s.clock.Now()}
	var err error
	made.id, _, err = s.client.Session().CreateNoChecks(&api.SessionEntry{
		Name: "quorum " + s.name, TTL: ttl.String(), Behavior: api.SessionBehaviorDelete, LockDelay: lockDelay,
	}, s.options(ctx))
	if err != nil {
		return nil, err
	}
	return made, nil
}

// renew renews a session and reports whether there is one.
func (s *Store) renew(ctx context.Context, of *session) (bool, error) {
	at := s.clock.Now()
	entry, _, err := s.client.Session().Renew(of.id, s.options(ctx))
	if err != nil || entry == nil {
		return false, err
	}
	of.at = at
	return true, nil
}

// fresh reports whether a session may be renewed. The server ends one after
// twice its TTL, by a request of its own that a renewal does not call back: one
// that comes between the two is answered, and the session ends all the same. So
// a session whose last renewal is not known to be recent is renewed no more,
// and its vote moves to a new one.
func (s *Store) fresh(of *session) bool { return s.clock.Now().Sub(of.at) < of.ttl }

// spares are sessions that no vote uses and no transaction that may still
// arrive names. They make waiting cheap: a refused Acquire has made one for
// nothing, and the next renews it, which writes nothing to the servers' disks.
type spares struct {
	mu   sync.Mutex
	free []*session
}

// maxSpares bounds them. More than that end by themselves.
const maxSpares = 64

func (s *Store) spare(of *session) {
	if of == nil {
		return
	}
	s.spares.mu.Lock()
	defer s.spares.mu.Unlock()
	if len(s.spares.free) < maxSpares {
		s.spares.free = append(s.spares.free, of)
	}
}

// take returns the spare of that very TTL that was used last, or nil.
func (s *Store) take(ttl time.Duration) *session {
	s.spares.mu.Lock()
	defer s.spares.mu.Unlock()
	kept := s.spares.free[:0]
	var found *session
	for _, of := range s.spares.free {
		if s.fresh(of) {
			kept = append(kept, of)
		}
	}
	for i := len(kept) - 1; i >= 0 && found == nil; i-- {
		if kept[i].ttl == ttl {
			found = kept[i]
			kept = append(kept[:i], kept[i+1:]...)
		}
	}
	clear(s.spares.free[len(kept):])
	s.spares.free = kept
	return found
}

// obtain returns a session that lasts for ttl from now: a spare that it
// renewed, or a new one.
func (s *Store) obtain(ctx context.Context, ttl time.Duration) (*session, error) {
	if of := s.take(ttl); of != nil {
		ok, err := s.renew(ctx, of)
		if ok || err != nil {
			return of, err
		}
	}
	return s.make(ctx, ttl)
}

// hold is a vote of this client: its session, and the name as the last answer
// left it, so that a release needs no look at it first.
type hold struct {
	of   *session
	snap *snapshot
}

// holds are this client's votes. One that is forgotten here costs a round trip.
type holds struct {
	mu   sync.Mutex
	all  map[holder]hold
	next int // how many there may be before those that are over are dropped
}

type holder struct {
	key   string
	owner quorum.Owner
}

func (s *Store) held(key string, owner quorum.Owner) (hold, bool) {
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	h, ok := s.holds.all[holder{key, owner}]
	return h, ok
}

func (s *Store) hold(key string, owner quorum.Owner, h hold) {
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	x := &s.holds
	if x.all == nil {
		x.all = map[holder]hold{}
	}
	x.all[holder{key, owner}] = h
	if len(x.all) <= max(x.next, 64) {
		return
	}
	for k, h := range x.all {
		if !s.fresh(h.of) {
			delete(x.all, k)
		}
	}
	x.next = 2 * len(x.all)
}

// drop forgets a vote and returns what was known of it.
func (s *Store) drop(key string, owner quorum.Owner) (hold, bool) {
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	h, ok := s.holds.all[holder{key, owner}]
	delete(s.holds.all, holder{key, owner})
	return h, ok
}

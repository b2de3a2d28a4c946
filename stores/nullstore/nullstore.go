// Package nullstore has a store that grants everything, for code that takes
// locks and runs where nobody else does: a tool on a laptop, a test of something
// else. It excludes nobody.
package nullstore

import (
	"context"
	"sync"
	"time"

	"github.com/quorumlock/quorum"
)

// Store grants every request. Its tokens grow all the same, also from one
// process to the next as far as the machine's clock goes on, so that a resource
// that is fenced takes the writes. It keeps nothing but the last token, and does
// no I/O. It stands alone: [quorum.Combine] refuses it beside any other store,
// and [quorum.Cluster] altogether.
type Store struct {
	name string

	mu   sync.Mutex
	last int64
}

var _ quorum.Store = (*Store)(nil)

// New returns a store that grants everything.
func New(name string) *Store { return &Store{name: name} }

// NoLock returns a Locker that excludes nobody, for code that is given one and
// should not coordinate here.
func NoLock(options ...quorum.Option) (*quorum.Locker, error) {
	return quorum.New(New("null"), options...)
}

// Name returns the name of the member.
func (s *Store) Name() string { return s.name }

// Limits says that it arbitrates between nobody.
func (s *Store) Limits() quorum.Limits {
	return quorum.Limits{Reach: quorum.ReachNone, Shares: true}
}

// Acquire grants. A repair has its lease's token, everything else a new one.
func (s *Store) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := ctx.Err(); err != nil {
		return quorum.Grant{}, quorum.Undelivered(err)
	}
	keeps := r.Kind == quorum.KindRepair || r.Kind == quorum.KindConvert && r.Mode == quorum.ModeShared
	token := r.Floor
	if !keeps {
		token = s.next(r.Floor)
	}
	return quorum.Grant{Token: token, TTL: r.TTL, Mode: r.Mode, Readers: readers(r.Mode)}, nil
}

// Extend grants, with the floor as the token.
func (s *Store) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := ctx.Err(); err != nil {
		return quorum.Grant{}, quorum.Undelivered(err)
	}
	return quorum.Grant{Token: r.Floor, TTL: r.TTL, Mode: r.Mode, Readers: readers(r.Mode)}, nil
}

// Release has nothing to do.
func (s *Store) Release(ctx context.Context, _ quorum.Request) error {
	return quorum.Undelivered(ctx.Err())
}

// readers counts the reader that asks: it never sees another.
func readers(m quorum.Mode) int {
	if m == quorum.ModeShared {
		return 1
	}
	return 0
}

// next is the next token: above the last one and what the clock stands for, as
// stores with a memory begin a name (2^26 tokens in five minutes).
func (s *Store) next(floor int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	const period = int64(5 * time.Minute / time.Microsecond)
	now := time.Now().UnixMicro()
	mark := now/period<<26 + now%period<<26/period
	s.last = max(s.last+1, floor, mark)
	return s.last
}

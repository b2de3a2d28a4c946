package storetest_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// MapStore is a whole store on one page: votes in a map. It does not share and
// never forgets, so it needs no mode and no quarantine. A real one would also
// drop tombstones and forced marks that are older than MaxTTL.
type MapStore struct {
	Now   func() time.Time
	mu    sync.Mutex
	set   quorum.Fingerprint
	names map[string]*name
}

type name struct {
	owner   quorum.Owner
	label   string
	until   time.Time // of the vote; a vote that has ended is none
	counter int64     // never goes down; the token of the vote
	tombs   map[quorum.OwnerID]uint32
	forced  map[quorum.OwnerID]string // removed owners, and by whom
}

func (s *MapStore) Name() string          { return "map" }
func (s *MapStore) Limits() quorum.Limits { return quorum.Limits{} }

// open checks a request, and finds its name, whose vote is the zero Owner when
// it has ended. The caller holds the mutex.
func (s *MapStore) open(ctx context.Context, r quorum.Request) (n *name, now time.Time, err error) {
	now = s.Now()
	start := now.Unix() / 300 << 26 // where tokens start, so that stores agree
	switch {
	case ctx.Err() != nil:
		return nil, now, quorum.Undelivered(ctx.Err())
	case r.Key == "" || len(r.Key) > 512 || !utf8.ValidString(r.Key) || strings.Contains(r.Key, "\x00"):
		return nil, now, quorum.Undelivered(fmt.Errorf("%w: %q", quorum.ErrInvalidKey, r.Key))
	case s.set != 0 && r.Set != s.set:
		return nil, now, &quorum.RefusedError{Outcome: quorum.OutcomeMismatch, Reason: "the store serves set " + s.set.String()}
	case r.Floor > start+1<<40:
		return nil, now, fmt.Errorf("floor %d of %q is out of reach", r.Floor, r.Key)
	}
	s.set = r.Set
	if s.names == nil {
		s.names = map[string]*name{}
	}
	if n = s.names[r.Key]; n == nil {
		n = &name{counter: start, tombs: map[quorum.OwnerID]uint32{}, forced: map[quorum.OwnerID]string{}}
		s.names[r.Key] = n
	}
	if !now.Before(n.until) {
		n.owner = quorum.Owner{}
	}
	return n, now, nil
}

func (s *MapStore) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := s.open(ctx, r)
	if err != nil {
		return quorum.Grant{}, err
	}
	mine, free := n.owner.ID == r.Owner.ID, n.owner == quorum.Owner{}
	switch {
	case r.Owner.Attempt <= n.tombs[r.Owner.ID], mine && r.Owner.Attempt < n.owner.Attempt:
		return quorum.Grant{}, &quorum.RefusedError{Outcome: quorum.OutcomeContended, Reason: "a later attempt was here"}
	case !free && !mine && r.Kind != quorum.KindForce:
		return quorum.Grant{}, &quorum.RefusedError{
			Outcome: quorum.OutcomeContended, Label: n.label, Left: n.until.Sub(now), Counter: n.counter, Clean: true,
		}
	case r.Kind == quorum.KindRepair && r.Floor < n.counter:
		return quorum.Grant{}, &quorum.RefusedError{Outcome: quorum.OutcomeContended, Counter: n.counter}
	case r.Kind == quorum.KindRepair:
		n.counter = r.Floor
	case !mine || n.owner.Attempt < r.Owner.Attempt: // a new vote
		n.counter = max(n.counter+1, r.Floor)
	}
	if !free && !mine {
		n.forced[n.owner.ID] = r.Label
	}
	if n.owner != r.Owner {
		n.until = time.Time{}
	}
	n.owner, n.label = r.Owner, r.Label
	return n.keep(now, r), nil
}

// keep lets the vote last for r.TTL at least.
func (n *name) keep(now time.Time, r quorum.Request) quorum.Grant {
	if end := now.Add(r.TTL); end.After(n.until) {
		n.until = end
	}
	return quorum.Grant{Token: n.counter, TTL: n.until.Sub(now)}
}

func (s *MapStore) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, now, err := s.open(ctx, r)
	if err != nil {
		return quorum.Grant{}, err
	}
	if n.owner != r.Owner {
		by, forced := n.forced[r.Owner.ID]
		return quorum.Grant{}, &quorum.RefusedError{Outcome: quorum.OutcomeNotHeld, Forced: forced, Label: by}
	}
	n.counter = max(n.counter, r.Floor)
	return n.keep(now, r), nil
}

func (s *MapStore) Release(ctx context.Context, r quorum.Request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, _, err := s.open(ctx, r)
	if err != nil {
		return err
	}
	if r.Entomb {
		n.tombs[r.Owner.ID] = max(n.tombs[r.Owner.ID], r.Owner.Attempt)
	}
	if n.owner.ID != r.Owner.ID || n.owner == (quorum.Owner{}) || n.owner.Attempt > r.Owner.Attempt {
		return &quorum.RefusedError{Outcome: quorum.OutcomeNotHeld}
	}
	n.owner, n.until = quorum.Owner{}, time.Time{}
	return nil
}

// A store of one's own is checked by one call.
func Example() {
	_ = func(t *testing.T) {
		var ahead time.Duration
		storetest.Run(t, storetest.Factory{
			New: func(*testing.T) quorum.Store {
				return &MapStore{Now: func() time.Time { return time.Now().Add(ahead) }}
			},
			Advance: func(d time.Duration) { ahead += d },
		})
	}
}

//go:build unix

// Package acceptance is what a set of stores must show on real servers, whatever
// kinds they are of: tokens that grow over any sequence of quorums, a member
// that forgets and lets no rival in, and processes that never overlap.
package acceptance

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// Member is one store of a set, and what a test does to its server.
type Member struct {
	Store  quorum.Store
	Forget func() // loses everything it has; a member that cannot has none
}

// Set is a set under test, each member behind a wrapper that can cut it off.
type Set struct {
	Store   *quorum.CombinedStore
	Members []Member
	Spoil   []*storetest.Spoiled

	t      *testing.T
	mu     sync.Mutex
	events []quorum.Event
}

// Combine makes a set of members under a strict majority.
func Combine(t *testing.T, members []Member) *Set {
	t.Helper()
	s := &Set{t: t, Members: members}
	var stores []quorum.Store
	for _, m := range members {
		sp := storetest.Spoil(m.Store)
		t.Cleanup(sp.Close)
		s.Spoil = append(s.Spoil, sp)
		stores = append(stores, sp)
	}
	var err error
	if s.Store, err = quorum.Combine(quorum.Consensus(), stores...); err != nil {
		t.Fatal(err)
	}
	return s
}

// Locker makes a locker of the set, which ends with the test.
func (s *Set) Locker(options ...quorum.Option) *quorum.Locker {
	s.t.Helper()
	return Locker(s.t, s.Store, append([]quorum.Option{quorum.Observe(s.observe)}, options...)...)
}

// Locker makes a locker of a store, which ends with the test.
func Locker(t testing.TB, s quorum.Store, options ...quorum.Option) *quorum.Locker {
	t.Helper()
	l, err := quorum.New(s, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

// Fresh makes a locker of a set declared new.
func (s *Set) Fresh(options ...quorum.Option) *quorum.Locker {
	s.t.Helper()
	l := s.Locker(options...)
	if err := l.Init(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *Set) observe(e quorum.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

// Seen returns the events of a kind so far.
func (s *Set) Seen(kind quorum.EventKind) []quorum.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.events), func(e quorum.Event) bool { return e.Kind != kind })
}

// Cut makes members unreachable, and mends all others.
func (s *Set) Cut(members ...int) {
	for i, sp := range s.Spoil {
		if slices.Contains(members, i) {
			sp.Set(storetest.Always(storetest.Fail(quorum.Undelivered(errors.New("cut off")))))
		} else {
			sp.Set()
		}
	}
}

// Holders says in how many members anybody holds a key; unreachable ones count
// as none.
func (s *Set) Holders(l *quorum.Locker, key string) int {
	s.t.Helper()
	status, err := l.Inspect(context.Background(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for _, st := range status.Stores {
		if len(st.State.Holders) > 0 {
			n++
		}
	}
	return n
}

// votes reports whether no member is in quarantine. It acquires, since that is
// what sets a member on its way back.
func (s *Set) votes(l *quorum.Locker) bool {
	s.t.Helper()
	if lease, err := l.TryAcquire(s.t.Context(), "another"); err == nil {
		_ = lease.Release(s.t.Context())
	}
	status, err := l.Inspect(s.t.Context(), "another")
	if err != nil {
		s.t.Fatal(err)
	}
	return !slices.ContainsFunc(status.Stores, func(st quorum.StoreStatus) bool { return st.Err != nil || st.State.Quarantine })
}

// Acquire takes a lock, within a generous bound.
func Acquire(t *testing.T, l *quorum.Locker, key string, options ...quorum.Option) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := l.Acquire(ctx, key, options...)
	if err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return lease
}

// Held demands that a rival gets no lock, and is told in the end that it is held:
// a store on a busy machine may answer late.
func Held(t *testing.T, l *quorum.Locker, key, when string) {
	t.Helper()
	Poll(t, time.Minute, "a rival "+when+" to be told that it is held", func() bool {
		rival, err := l.TryAcquire(t.Context(), key)
		if rival != nil {
			t.Fatalf("%s a rival got in, token %d", when, rival.Token())
		}
		return errors.Is(err, quorum.ErrHeld)
	})
}

// Cycle takes a lock, gives it back, and returns its token.
func Cycle(t *testing.T, l *quorum.Locker, key string) int64 {
	t.Helper()
	lease := Acquire(t, l, key)
	_ = lease.Release(t.Context()) // a member that is cut off is told later
	return lease.Token()
}

package acceptance

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Owner returns a new owner in its first attempt.
func Owner() quorum.Owner {
	o := quorum.Owner{Attempt: 1}
	_, _ = rand.Read(o.ID[:])
	return o
}

// DeclareNew ends the quarantine that a store on a server begins with. Set,
// MaxTTL and Limit of r count.
func DeclareNew(t testing.TB, s quorum.HighWater, r quorum.Request) {
	t.Helper()
	step, err := s.ReadStep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if step.Quarantine == "" {
		t.Fatal("a store that was never used is not in quarantine")
	}
	if err := s.Raise(t.Context(), r, quorum.Raise{Quarantine: step.Quarantine, Fresh: true}); err != nil {
		t.Fatal(err)
	}
}

// MustAcquire fails the test unless r is granted.
func MustAcquire(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire %q: %v", r.Key, err)
	}
	return g
}

// MustExtend fails the test unless the vote of r is extended.
func MustExtend(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Extend(t.Context(), r)
	if err != nil {
		t.Fatalf("extend %q: %v", r.Key, err)
	}
	return g
}

// MustRelease fails the test unless there was something to release.
func MustRelease(t testing.TB, s quorum.Store, r quorum.Request) {
	t.Helper()
	if err := s.Release(context.WithoutCancel(t.Context()), r); err != nil {
		t.Fatalf("release %q: %v", r.Key, err)
	}
}

// WantOutcome fails the test unless err counts as want.
func WantOutcome(t testing.TB, err error, want quorum.Outcome) {
	t.Helper()
	if got := quorum.OutcomeOf(err); got != want {
		t.Fatalf("outcome %v (%v), want %v", got, err, want)
	}
}

// Await is [Poll] with a bound that no server at work reaches.
func Await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	Poll(t, 30*time.Second, what, ok)
}

// Poll waits for what servers do in their own time.
func Poll(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

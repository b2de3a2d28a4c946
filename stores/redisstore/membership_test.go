package redisstore_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
)

// TestR48SetsAreServedInTurn goes the whole way from one set to another, each
// move twice.
func TestR48SetsAreServedInTurn(t *testing.T) {
	s := store(t, client(t, testserver.Redis(t).Addr))
	const before, joint, after = quorum.Fingerprint(0xfeed), quorum.Fingerprint(0xa1), quorum.Fingerprint(0xb2)
	type sets = []quorum.Fingerprint
	r := ask("k", owner())
	serves := func(want ...quorum.Fingerprint) {
		t.Helper()
		other := r
		other.Set = 0xdead // it answers whoever asks
		got, err := s.Serves(t.Context(), other)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("serves %v (%v), want %v", got, err, want)
		}
	}
	answers := func(set quorum.Fingerprint, want quorum.Outcome) {
		t.Helper()
		q := ask("k", owner())
		q.Set = set
		_, err := s.Acquire(t.Context(), q)
		wantOutcome(t, err, want)
		if err == nil {
			mustRelease(t, s, q)
		}
	}
	serves()
	wantOutcome(t, s.Serve(t.Context(), r, sets{before}, sets{before, joint}), quorum.OutcomeMismatch)
	serves()
	declareNew(t, s)
	serves(before)
	for _, move := range []struct{ from, to sets }{
		{sets{before}, sets{joint, before}},
		{sets{before, joint}, sets{joint}},
		{sets{joint}, sets{joint, after}},
		{sets{after, joint}, sets{after}},
	} {
		for range 2 {
			if err := s.Serve(t.Context(), r, move.from, move.to); err != nil {
				t.Fatalf("from %v to %v: %v", move.from, move.to, err)
			}
			serves(move.to...)
		}
		for _, set := range []quorum.Fingerprint{before, joint, after} {
			want := quorum.OutcomeMismatch
			if slices.Contains(move.to, set) {
				want = quorum.OutcomeGranted
			}
			answers(set, want)
		}
	}
	err := s.Serve(t.Context(), r, sets{before}, sets{joint})
	wantOutcome(t, err, quorum.OutcomeMismatch)
	if !contains(err.Error(), after.String()) {
		t.Errorf("a move from what is not served: %v", err)
	}
	serves(after)
	for _, bad := range []sets{nil, {before, joint, after}} {
		err := s.Serve(t.Context(), r, sets{after}, bad)
		wantOutcome(t, err, quorum.OutcomeUndelivered)
		if !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("to %v: %v", bad, err)
		}
	}
}

// TestR48LongerLeasesOfTheOtherSetStand: a client whose set has the shorter
// MaxTTL must not take a lease of the other for one left from before the clock
// went back, and not let its keys expire.
func TestR48LongerLeasesOfTheOtherSetStand(t *testing.T) {
	node, clock := stoppedRedis(t)
	s := store(t, client(t, node.Addr))
	declareNew(t, s)
	short, long := ask("k", owner()), ask("k", owner())
	long.Set, long.MaxTTL, long.TTL = 0xa1, time.Hour, time.Hour
	if err := s.Serve(t.Context(), long, []quorum.Fingerprint{short.Set}, []quorum.Fingerprint{short.Set, long.Set}); err != nil {
		t.Fatal(err)
	}
	short.Mode, long.Mode = quorum.ModeShared, quorum.ModeShared
	mustAcquire(t, s, long)
	mustAcquire(t, s, short)
	clock.Advance(50 * time.Minute)
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeContended)
	if _, err := s.Extend(t.Context(), long); err != nil {
		t.Errorf("extend of a lease with half its time left: %v", err)
	}
}

package quorum

import (
	"context"
	"time"
)

// HighWater is the ability of a store to leave quarantine: a store that may
// forget must have it. Tokens grow in steps; a store that forgot is raised
// above the steps that a quorum of the others remembers. Find it with [As].
type HighWater interface {
	// ReadStep reads the store's record. Only Set, MaxTTL and Limit of r count.
	ReadStep(ctx context.Context, r Request) (Step, error)
	// Raise ends a quarantine, or begins one, as o says, in one atomic step.
	Raise(ctx context.Context, r Request, o Raise) error
}

// Step is a store's record as [HighWater] reads it.
type Step struct {
	Step       int64         // the step that fresh names start from
	Base       int64         // no token at or below it is given
	Quarantine string        // which quarantine the store is in; empty when it votes
	Over       bool          // that quarantine's time is over, so that the store may leave
	Left       time.Duration // until then
	Server     string
}

// Raise says how a store's quarantine ends or begins.
type Raise struct {
	// Quarantine is the one meant, as [Step] named it. A raise that is late,
	// and meant for an earlier one, is refused.
	Quarantine string
	// Step is the highest step of a quorum that was read after the
	// quarantine's time was over.
	Step int64
	// Alone says that no such quorum can exist; the new mark then comes from
	// the store's clock and Step.
	Alone bool
	// Fresh is an operator's word that nothing was held in the set: the
	// quarantine ends at once.
	Fresh bool
	// Forgotten is an operator's word that the store forgot: it begins a
	// quarantine.
	Forgotten bool
}

// Inspector is the ability to say who holds a name. Find it with [As].
type Inspector interface {
	// Inspect reads a name and changes nothing. Only Key, Set, MaxTTL and
	// Limit of r count.
	Inspect(ctx context.Context, r Request) (State, error)
}

// Membership is the ability to change which sets of stores a store serves,
// while locks are held. Find it with [As].
type Membership interface {
	// Serves reads the fingerprints that the store serves, none before its
	// first request. Only MaxTTL and Limit of r count: it answers whatever set
	// asks.
	Serves(ctx context.Context, r Request) ([]Fingerprint, error)
	// Serve makes the store serve to instead of from, at most two each, in one
	// atomic step. Where it serves neither from nor to, in any order, it
	// changes nothing and is refused as a mismatch; where it serves to already
	// it is done.
	Serve(ctx context.Context, r Request, from, to []Fingerprint) error
}

// Adviser is the ability to say what about a store endangers locks, such as an
// eviction policy or a network file system. Find it with [As].
type Adviser interface {
	// Advice returns what is known so far, a sentence each; it does no I/O. A
	// [Locker] tells it as [EventAdvice] after the store's first answer.
	Advice() []string
}

// State is what a store knows of a name.
type State struct {
	Holders    []Holder
	Counter    int64 // 0 when the store keeps none for the name
	Quarantine bool  // the store does not vote
	Server     string
}

// Holder is one live vote.
type Holder struct {
	Owner string // a one-way digest of the owner's ID, see [Owner.Digest]
	Label string
	Mode  Mode
	Token int64
	Since time.Time     // on the store's clock
	Left  time.Duration // until the vote ends
}

// As finds an ability of a store: s itself or, through Unwrap() Store, the
// first store beneath it that has it.
func As[T any](s Store) (T, bool) {
	for s != nil {
		if t, ok := s.(T); ok {
			return t, true
		}
		u, ok := s.(interface{ Unwrap() Store })
		if !ok {
			break
		}
		s = u.Unwrap()
	}
	var none T
	return none, false
}

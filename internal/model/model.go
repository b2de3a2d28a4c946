// Package model is one store as a pure value: what it keeps of itself, what it
// keeps of a name, and what every verb of the protocol makes of the two. The
// memory and the file store run it, the simulator's nodes are it, and every
// other store is compared with it.
//
// It knows no clock, goroutine or source of chance. Whoever calls [Apply] gives
// it the time and keeps the call atomic and isolated.
package model

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Time is a reading of a store's own clock: microseconds since 1970. It may
// jump, also back.
type Time int64

// Add returns t + d, rounded up to a whole microsecond: a store may give a
// longer time than it was asked for, never a shorter one.
func (t Time) Add(d time.Duration) Time {
	whole := Time(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		whole++
	}
	return t + whole
}

// Sub returns t - u.
func (t Time) Sub(u Time) time.Duration { return time.Duration(t-u) * time.Microsecond }

// step is the number of whole step periods since 1970.
func (t Time) step() int64 { return int64(t) / int64(core.StepPeriod/time.Microsecond) }

// Standing says whether a store votes.
type Standing uint8

// The standings. The zero value is a record that is missing, so that a store
// that lost everything is in doubt without anybody saying so.
const (
	Missing     Standing = iota // there is no record; the next request begins a quarantine
	Doubtful                    // it may have forgotten something; the next request begins a quarantine
	Voting                      // it remembers everything since Base
	Quarantined                 // it does not vote before it is raised, which is not before End
)

// Record is what a store keeps of itself. Records compare with ==, so that a
// backend can tell whether one has to be written. The zero Record is one that
// is missing.
//
// A backend may store a Record and a Name under the names of their fields, and
// the constants above as numbers: to rename or renumber one is a change of a
// stored format.
type Record struct {
	Standing Standing
	Lost     bool      // it was missing when its quarantine began: Step is the clock's, and no memory
	Serving  uint8     // how many of Serves count; none before the first request
	Serves   [2]uint64 // fingerprints of the sets it votes in; two while a set changes
	Member   string    // who it is in the set
	Run      string    // which life of the server; part of a quarantine's name
	End      Time      // of the quarantine
	Base     int64     // no exclusive token at or below it is given
	Step     int64     // a name without a counter starts from Step << core.StepBits
	Moved    Time      // when Step moved
}

// Name is all that a store keeps of one name. Votes and Tombs and Forced are
// sorted by ID, at most one of each an ID, so that equal names encode equally.
type Name struct {
	Votes   []Vote
	Tombs   []Tomb
	Forced  []Forced
	Queue   []Entry // who waits, in order of (ticket, ID), at most one entry an ID
	Known   bool    // there is a counter; without one the name starts from the record's step
	Writer  bool    // the counter was last given to a writer: the next reader must step past it
	Counter int64   // at least every token given, while it is known
	Keep    Time    // the counter may be dropped then, if the step has passed it
	Last    core.Previous
}

// Vote is a grant that the store keeps.
type Vote struct {
	Owner core.Owner
	Mode  core.Mode
	Token int64
	Since Time
	Until Time // the vote is over at this very moment
	Label string
}

// Tomb refuses an ID's attempts up to Attempt: they were released, and a
// request of theirs may still be under way.
type Tomb struct {
	ID      core.ID
	Attempt uint32
	Until   Time
}

// Forced remembers whom a take-over removed, to tell them.
type Forced struct {
	ID    core.ID
	Label string // of who took over
	Until Time
}

// Clone returns a Name that shares no memory with n.
func (n *Name) Clone() Name {
	c := *n
	c.Votes = slices.Clone(n.Votes)
	c.Tombs = slices.Clone(n.Tombs)
	c.Forced = slices.Clone(n.Forced)
	c.Queue = slices.Clone(n.Queue)
	return c
}

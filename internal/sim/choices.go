package sim

import (
	"math/bits"
	"math/rand/v2"
)

// Topic says what a choice is about. Each topic has a stream of its own in
// [Seeded], so that a message more does not change what the clients do.
type Topic uint8

// The topics.
const (
	OfPlan    Topic = iota // which faults there are
	OfTie                  // which of two events at one instant comes first
	OfNetwork              // how long a message takes, and whether it arrives
	OfWork                 // what clients do
	OfClock                // how clocks differ
	OfConfig               // what the world is made of
	topics
)

// Choices is the only source of what could be so or otherwise.
type Choices interface {
	// Choose returns a number below n, which is at least 1. Zero is always the
	// calm answer: the usual delay, no loss, no fault, first come first served.
	Choose(about Topic, n uint64) uint64
}

// Seeded returns choices drawn from a seed.
func Seeded(seed uint64) Choices {
	s := &seeded{}
	for t := range s.streams {
		s.streams[t].Seed(seed, uint64(t)+1)
	}
	return s
}

type seeded struct{ streams [topics]rand.PCG }

func (s *seeded) Choose(about Topic, n uint64) uint64 {
	hi, _ := bits.Mul64(s.streams[about].Uint64(), n)
	return hi
}

// Calm returns choices that are all zero.
func Calm() Choices { return Listed(nil) }

// Listed returns choices that were recorded, in their order, and calm ones
// once the list is over.
func Listed(list []uint64) Choices { return &listed{list} }

type listed struct{ rest []uint64 }

func (l *listed) Choose(_ Topic, n uint64) uint64 {
	if len(l.rest) == 0 {
		return 0
	}
	x := l.rest[0]
	l.rest = l.rest[1:]
	return min(x, n-1)
}

// Recorder keeps what another source chose, for [Listed].
type Recorder struct {
	From Choices
	List []uint64
}

// Choose implements [Choices].
func (r *Recorder) Choose(about Topic, n uint64) uint64 {
	x := r.From.Choose(about, n)
	r.List = append(r.List, x)
	return x
}

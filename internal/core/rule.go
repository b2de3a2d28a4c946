package core

import "math/bits"

// Set is a set of members by index.
type Set uint32

// MaxMembers is the most members a set may have. A rule is tabulated over all
// their subsets (8 KiB at 16), and no quorum of locks grows further.
const MaxMembers = 16

// Full returns the set of the first n members.
func Full(n int) Set { return Set(1)<<n - 1 }

// Has reports whether member i is in s.
func (s Set) Has(i int) bool { return s>>i&1 == 1 }

// With returns s and member i.
func (s Set) With(i int) Set { return s | 1<<i }

// Without returns s but for member i.
func (s Set) Without(i int) Set { return s &^ (1 << i) }

// Len returns the number of members in s.
func (s Set) Len() int { return bits.OnesCount32(uint32(s)) }

// Rule is a strategy written out as a table over every set of votes. It is
// made once, when stores are combined, so that a user's strategy is called
// nowhere else: it can neither panic nor change its mind while a lock is held.
type Rule struct {
	n      int
	met    []uint64
	need   int
	counts bool
}

// Tabulate asks met about every set of n members.
func Tabulate(n int, met func(Set) bool) *Rule {
	r := &Rule{n: n, met: make([]uint64, (1<<n+63)/64)}
	for s := Set(0); s <= Full(n); s++ {
		if met(s) {
			r.met[s/64] |= 1 << (s % 64)
		}
	}
	r.need, r.counts = n+1, true
	for s := Set(0); s <= Full(n); s++ {
		if r.Met(s) {
			r.need = min(r.need, s.Len())
		}
		r.counts = r.counts && r.Met(s) == r.Met(Full(s.Len()))
	}
	return r
}

// Majority is the rule that more than half of n members must agree.
func Majority(n int) *Rule {
	return Tabulate(n, func(s Set) bool { return s.Len() > n/2 })
}

// N returns the number of members.
func (r *Rule) N() int { return r.n }

// Met reports whether the votes in s are enough.
func (r *Rule) Met(s Set) bool { return r.met[s/64]>>(s%64)&1 == 1 }

// Split returns a satisfying set whose complement satisfies the rule as well.
// Two owners could then hold a name at once, and their tokens would not be
// ordered; ok is false when there is no such pair.
func (r *Rule) Split() (a, b Set, ok bool) {
	for s := Set(0); s <= Full(r.n); s++ {
		if rest := Full(r.n) &^ s; r.Met(s) && r.Met(rest) {
			return s, rest, true
		}
	}
	return 0, 0, false
}

// Shrinks returns a satisfying set and a larger one that does not satisfy the
// rule; ok is false for a monotone rule, which every strategy must be: a vote
// more must never lose a lock.
func (r *Rule) Shrinks() (small, large Set, ok bool) {
	for s := Set(0); s <= Full(r.n); s++ {
		if !r.Met(s) {
			continue
		}
		for i := range r.n {
			if more := s.With(i); !r.Met(more) {
				return s, more, true
			}
		}
	}
	return 0, 0, false
}

// Need returns the size of the smallest satisfying set, and n+1 when there is
// none.
func (r *Rule) Need() int { return r.need }

// Counts reports whether only the number of votes matters.
func (r *Rule) Counts() bool { return r.counts }

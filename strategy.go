package quorum

import (
	"fmt"

	"github.com/quorumlock/quorum/internal/core"
)

// MaxMembers is the most stores a [CombinedStore] may have directly: 16. A
// strategy is tabulated over all sets of them.
const MaxMembers = core.MaxMembers

// Strategy decides how many stores, or which, must agree. It must be monotone
// (a vote more never makes it fail), and any two sets that satisfy it must
// share a store; [Combine] proves both over every set of votes and refuses
// otherwise. It is asked only then, never while a lock is taken.
type Strategy interface {
	// String names the rule and its numbers. It is part of the fingerprint, so
	// two different rules must not share a text.
	fmt.Stringer
	// Met reports whether the votes in v, out of n stores, are enough.
	Met(v Votes, n int) bool
}

// Votes is a set of stores by their position in the set of members.
type Votes uint32

// Has reports whether store i has voted.
func (v Votes) Has(i int) bool { return core.Set(v).Has(i) }

// Len returns how many stores have voted.
func (v Votes) Len() int { return core.Set(v).Len() }

// Consensus is a strict majority: of 1 to 6 stores it needs 1, 2, 2, 3, 3, 4.
// It survives the loss of the others.
func Consensus() Strategy { return consensus{} }

type consensus struct{}

func (consensus) String() string          { return "consensus" }
func (consensus) Met(v Votes, n int) bool { return v.Len() > n/2 }

// Unanimous needs every store. It survives the loss of none, and is for moving
// from one set of stores to another.
func Unanimous() Strategy { return unanimous{} }

type unanimous struct{}

func (unanimous) String() string          { return "unanimous" }
func (unanimous) Met(v Votes, n int) bool { return v.Len() == n }

// AtLeast is any k stores. [Combine] refuses it where two sets of k fit beside
// each other, so k is more than half of them. More than a majority costs
// availability and buys reserve: a lock then stands on more stores than it
// needs to be safe.
func AtLeast(k int) Strategy { return atLeast(k) }

type atLeast int

func (k atLeast) String() string          { return fmt.Sprintf("at least %d", int(k)) }
func (k atLeast) Met(v Votes, _ int) bool { return v.Len() >= int(k) }

// placed is a strategy that tells its members apart by name or by domain, and
// not by their place in the list: place looks at them once, and its text names
// them in an order of its own, so that all clients agree whatever list they were
// given.
type placed interface {
	place(members []Store) (Strategy, error)
}

// tabulate writes a strategy out and proves what a quorum needs. A panic of a
// user's strategy becomes an error here.
func tabulate(s Strategy, members []Store) (rule *core.Rule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: strategy panicked: %v", ErrInvalidOption, p)
		}
	}()
	n := len(members)
	rule = core.Tabulate(n, func(set core.Set) bool { return s.Met(Votes(set), n) })
	if small, large, bad := rule.Shrinks(); bad {
		return nil, fmt.Errorf("%w: strategy %s is met by %s and not by %s: a vote more must not lose a lock",
			ErrInvalidOption, s, names(members, small), names(members, large))
	}
	if a, b, bad := rule.Split(); bad {
		return nil, fmt.Errorf("%w: strategy %s is met by %s and also by %s: two owners could hold one lock",
			ErrInvalidOption, s, names(members, a), names(members, b))
	}
	if !rule.Met(core.Full(n)) {
		return nil, fmt.Errorf("%w: strategy %s is not met even by all %d stores", ErrInvalidOption, s, n)
	}
	return rule, nil
}

// names lists the members of a set as {a, b}.
func names(members []Store, set core.Set) string {
	text := "{"
	for i, m := range members {
		if !set.Has(i) {
			continue
		}
		if len(text) > 1 {
			text += ", "
		}
		text += m.Name()
	}
	return text + "}"
}

package quorum

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Joint is two sets at once: a lock needs a quorum of each. It shares a store
// in every quorum with either set, which is what lets a set of stores change
// while locks are held, see [Change]; clients in between use [Between], which
// also takes care of MaxTTL.
//
// Its members are the stores of both, nested sets unfolded, at most
// [MaxMembers]. Stores of one name are one store: the old set's is used.
func Joint(old, new *CombinedStore) (*CombinedStore, error) {
	if old == nil || new == nil {
		return nil, fmt.Errorf("%w: Joint without a set", ErrInvalidOption)
	}
	known := map[string]Store{}
	for _, set := range []*CombinedStore{new, old} { // the old set's stores replace the new one's
		here := map[string]bool{}
		for _, m := range set.leaves() {
			if here[m.Name()] {
				return nil, fmt.Errorf("%w: Joint of a set with two stores named %q", ErrInvalidOption, m.Name())
			}
			here[m.Name()], known[m.Name()] = true, m
		}
	}
	members := slices.SortedFunc(maps.Values(known), func(a, b Store) int { return strings.Compare(a.Name(), b.Name()) })
	return Combine(joint{old: old, new: new}, members...)
}

type joint struct {
	old, new *CombinedStore
	at       map[string]int // by name; once it has met its members
}

func (j joint) place(members []Store) (Strategy, error) {
	j.at = map[string]int{}
	for i, m := range members {
		j.at[m.Name()] = i
	}
	return j, nil
}

func (j joint) Met(v Votes, _ int) bool {
	has := func(_ int, m Store) bool { return v.Has(j.at[m.Name()]) }
	return j.old.satisfied(has) && j.new.satisfied(has)
}

func (j joint) String() string { return "joint(" + j.old.describe() + " " + j.new.describe() + ")" }

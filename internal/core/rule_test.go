package core_test

import (
	"fmt"
	"testing"

	"github.com/quorumlock/quorum/internal/core"
)

func TestR36MajorityNeeds(t *testing.T) {
	for n, need := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, core.MaxMembers: 9} {
		r := core.Majority(n)
		if got := r.Need(); got != need || r.N() != n {
			t.Errorf("majority of %d needs %d of %d, want %d", n, got, r.N(), need)
		}
		if r.Met(core.Full(need-1)) || !r.Met(core.Full(need)) || r.Met(0) || !r.Met(core.Full(n)) {
			t.Errorf("majority of %d is not met from exactly %d on", n, need)
		}
	}
}

// Exactly half of the stores is no quorum, and the grants are given back.
func TestF041HalfOfTheStores(t *testing.T) {
	for n, need := range []int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4} {
		for grants := range n + 1 {
			if n == 0 {
				continue
			}
			t.Run(fmt.Sprintf("%d of %d", grants, n), func(t *testing.T) {
				q := core.NewQuorum(config(n, 0))
				q.Begin(0)
				var released core.Set
				for calls := q.Calls(); len(calls) > 0; calls = q.Calls() {
					for _, c := range calls {
						switch {
						case c.Req.Verb == core.Release:
							released = released.With(c.Store)
						case c.Store < grants:
							q.Answer(0, c.Store, c.Seq, core.Answer{Outcome: core.Granted, Token: 1})
						default:
							q.Answer(0, c.Store, c.Seq, core.Answer{Outcome: core.Undelivered})
						}
					}
				}
				if held := q.Phase() == core.Held; held != (grants >= need) {
					t.Fatalf("held %v with %d grants of %d, want %d to be enough", held, grants, n, need)
				}
				if grants >= need {
					return
				}
				if q.Failure() != core.ByNoQuorum || released != q.Votes() {
					t.Errorf("failure %v, released %b, granted %b: want no quorum and every grant given back", q.Failure(), released, q.Votes())
				}
			})
		}
	}
}

func TestR42Split(t *testing.T) {
	atLeast := func(k int) func(core.Set) bool { return func(s core.Set) bool { return s.Len() >= k } }
	for _, tc := range []struct {
		name string
		n    int
		met  func(core.Set) bool
		bad  bool
	}{
		{"majority of 4", 4, atLeast(3), false},
		{"2 of 4", 4, atLeast(2), true},
		{"1 of 2", 2, atLeast(1), true},
		{"all of 2", 2, atLeast(2), false},
		{"the first of 3 alone", 3, func(s core.Set) bool { return s.Has(0) }, false},
		{"a grid, any row", 4, func(s core.Set) bool { return s&3 == 3 || s&12 == 12 }, true},
		{"a grid, a row and a column", 4, func(s core.Set) bool { return (s&3 == 3 || s&12 == 12) && (s&5 == 5 || s&10 == 10) }, false},
		{"none", 3, func(core.Set) bool { return false }, false},
	} {
		r := core.Tabulate(tc.n, tc.met)
		a, b, bad := r.Split()
		if bad != tc.bad {
			t.Errorf("%s: split %v, want %v", tc.name, bad, tc.bad)
		}
		if bad && (!tc.met(a) || !tc.met(b) || a&b != 0) {
			t.Errorf("%s: %b and %b are no two disjoint quorums", tc.name, a, b)
		}
	}
}

func TestRuleShrinks(t *testing.T) {
	for _, tc := range []struct {
		name string
		met  func(core.Set) bool
		bad  bool
	}{
		{"majority", func(s core.Set) bool { return s.Len() > 2 }, false},
		{"an odd number", func(s core.Set) bool { return s.Len()%2 == 1 }, true},
		{"not the last", func(s core.Set) bool { return !s.Has(4) }, true},
		{"always", func(core.Set) bool { return true }, false},
	} {
		small, large, bad := core.Tabulate(5, tc.met).Shrinks()
		if bad != tc.bad {
			t.Errorf("%s: shrinks %v, want %v", tc.name, bad, tc.bad)
		}
		if bad && (!tc.met(small) || tc.met(large) || small&^large != 0) {
			t.Errorf("%s: %b, %b is no example", tc.name, small, large)
		}
	}
}

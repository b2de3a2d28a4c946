package sim

import (
	"testing"

	"github.com/quorumlock/quorum/internal/core"
)

// The strategies that package quorum offers beside a majority, written out as
// rules, keep the claims under every fault.
func TestR38StrategiesKeepTheClaims(t *testing.T) {
	for name, s := range map[string]struct {
		stores int
		met    func(core.Set) bool
	}{
		"at least 4 of 5": {5, func(s core.Set) bool { return s.Len() >= 4 }},
		"unanimous":       {3, func(s core.Set) bool { return s.Len() == 3 }},
		"weights 2 1 1 1": {4, func(s core.Set) bool { return s.Len()+(s&1).Len() >= 3 }},
		"three zones of two, two and three": {7, func(s core.Set) bool {
			zones := 0
			for _, zone := range []core.Set{0b0000011, 0b0001100, 0b1110000} {
				if 2*(s&zone).Len() > zone.Len() {
					zones++
				}
			}
			return zones >= 2
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rule, acquired := core.Tabulate(s.stores, s.met), 0
			if a, b, split := rule.Split(); split {
				t.Fatalf("the quorums %b and %b share no store", a, b)
			}
			n := seedCount(t) / 8
			for i := range n {
				seed := firstSeed(t) + i
				r := RunSeed(seed, Config{Rule: rule})
				if len(r.Violations) > 0 {
					t.Fatalf("seed %d: %v", seed, r.Violations[0])
				}
				acquired += r.Acquired
			}
			if acquired < int(n) {
				t.Errorf("%d acquisitions in %d runs show little", acquired, n)
			}
		})
	}
}

package sim

import (
	"testing"

	"github.com/quorumlock/quorum/internal/core"
)

// The ground of changing stores online: while a set moves from {a, b, c} to
// {c, d, e} a quorum is a majority of the old and one of the new. Such joint
// quorums keep the claims as any other rule does; that a set moves between
// rules while locks are held is not shown here.
func TestR48JointQuorumsKeepTheClaims(t *testing.T) {
	joint := core.Tabulate(5, func(s core.Set) bool {
		before, after := s&0b00111, s&0b11100
		return before.Len() >= 2 && after.Len() >= 2
	})
	if a, b, split := joint.Split(); split {
		t.Fatalf("the joint rule has disjoint quorums %b and %b", a, b)
	}
	n, acquired := seedCount(t)/4, 0
	for i := range n {
		seed := firstSeed(t) + i
		r := RunSeed(seed, Config{Rule: joint})
		if len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations[0])
		}
		acquired += r.Acquired
	}
	if acquired < int(n) {
		t.Errorf("%d acquisitions in %d runs show little", acquired, n)
	}
}

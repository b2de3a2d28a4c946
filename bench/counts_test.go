//go:build unix

package bench

import (
	"fmt"
	"testing"
	"time"
)

// TestCountsOfACycle is the regression check of this module: what an acquire
// and release of a free lock costs in counts, which do not depend on the
// machine. Limits lie a little above what was measured; lower them when the
// figures fall.
func TestCountsOfACycle(t *testing.T) {
	for _, c := range []struct {
		n          int
		row        row
		allocs     float64
		goroutines float64
	}{
		{1, inOrder, 40, 1}, {3, inOrder, 70, 1}, {3, firstRest, 75, 1}, {3, allAtOnce, 75, 1}, {5, inOrder, 110, 1},
	} {
		t.Run(fmt.Sprintf("%s, N = %d", c.row.name, c.n), func(t *testing.T) {
			s := start(t, c.n, 0)
			l := c.row.open(s)
			s.warm(c.row, l)
			const cycles = 300
			m, all := s.sample(c.row, load{
				locks: []locks{l}, workers: 1, cycles: cycles, length: time.Minute, key: keys(c.row, 0, false),
			})
			if len(all) != cycles || m["success"] != 1 {
				t.Fatalf("%d cycles, a share of %v succeeded; want %d and all", len(all), m["success"], cycles)
			}
			t.Logf("a cycle: %.2f commands, %.2f reads by the servers, %.1f allocations, %.2f goroutines",
				m["commands"], m["reads"], m["allocs"], m["goroutines"])
			for _, limit := range []struct {
				figure string
				most   float64
			}{
				// An acquire and a release a server. The rest of a set is repaired after
				// the lock is held, by requests that the release may make needless.
				{"commands", 2*float64(c.n) + 0.1}, {"reads", 2*float64(c.n) + 0.1},
				{"allocs", c.allocs}, {"goroutines", c.goroutines},
			} {
				if got := m[limit.figure]; got > limit.most {
					t.Errorf("%s a cycle: %.2f, more than %.2f", limit.figure, got, limit.most)
				}
			}
		})
	}
}

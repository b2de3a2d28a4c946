package core_test

import (
	"fmt"
	"runtime/debug"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
)

// finding is a violation and the way to it.
type finding struct {
	err  error
	path []move
}

// search visits every world that a scope can come to, or stops after bound
// worlds, and returns how many there were. A world is known by a hash of 64
// bits: of ten million the chance that any two share one is below 1 in 100,000.
func (sc *scope) search(bound int) (states int, cut bool, found *finding) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are many and short-lived
	seen := map[uint64]struct{}{}
	var path []move
	var visit func(w *world)
	visit = func(w *world) {
		w.moves(sc, func(m move) bool {
			next, err := w.play(sc, m)
			path = append(path, m)
			defer func() { path = path[:len(path)-1] }()
			if err == nil && sc.tidy {
				err = next.leftBehind(sc)
			}
			if err != nil {
				found = &finding{err, append([]move(nil), path...)}
				return false
			}
			h := next.hash()
			if _, known := seen[h]; known {
				return true
			}
			if len(seen) >= bound {
				cut = true
				return false
			}
			seen[h] = struct{}{}
			visit(next)
			return found == nil && !cut
		})
	}
	visit(sc.start())
	return len(seen), cut, found
}

// tell writes a finding out, a line for each move.
func (sc *scope) tell(f *finding) string {
	var b strings.Builder
	w := sc.start()
	for i, m := range f.path {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, m.in(w))
		w, _ = w.play(sc, m)
	}
	fmt.Fprintf(&b, "%v", f.err)
	return b.String()
}

// leftBehind checks that a client that failed or gave back and has nothing
// more to do has left nothing, and that one that holds and awaits no answer
// has no vote that it does not count on.
func (w *world) leftBehind(sc *scope) error {
	for i := range sc.modes {
		c := &w.clients[i]
		phase := c.q.Phase()
		_, _, quiet := c.q.Releases()
		if !c.begun || !quiet || phase == core.Asking || phase == core.Lost {
			continue
		}
		if active, _ := c.q.Extending(); active {
			continue
		}
		if phase == core.Held && w.left.Unknown < sc.left.Unknown || c.awaits(w, i) {
			continue
		}
		for s := range w.nodes {
			for _, v := range w.nodes[s].name.Votes {
				// A vote of before a promotion, at a store that it did not reach, stands
				// until the next round repairs it.
				older := sc.left.Promote > 0 && v.Owner.Attempt < c.q.Attempt()
				if int(v.Owner.ID[0]) == i+1 && !(phase == core.Held && (older || c.q.Votes().Has(s))) {
					return fmt.Errorf("nothing left behind: %s is done with %c, and its vote is there", letter(i), 'a'+s)
				}
			}
		}
	}
	return nil
}

// awaits reports whether a message of the client's is still under way.
func (c *client) awaits(w *world, i int) bool {
	for s := range c.flights {
		if c.flights[s].req != nil {
			return true
		}
	}
	for _, p := range w.mail {
		if p.req != nil && p.from == i {
			return true
		}
	}
	return false
}

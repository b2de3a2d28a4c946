package sim

import (
	"slices"

	"github.com/quorumlock/quorum/internal/core"
)

// Set is some of the world's stores and a strategy over them: what a client is
// configured with. Without one a client uses all stores and the world's rule.
type Set struct {
	Print   uint64     // its fingerprint
	Members []int      // by number in the world
	Rule    *core.Rule // over the members
}

// set is what a client is configured with at its start, and anew when a store
// refuses the one that it has.
func (w *World) set() *Set {
	if w.cfg.Latest != nil {
		return w.cfg.Latest()
	}
	return w.only
}

// use configures the client with a set, for what it begins from now on. What
// it has learnt of stores is by their place in the set, and it looks after
// those of the set alone.
func (c *Client) use(s *Set) {
	if c.set == s {
		return
	}
	c.set, c.health, c.swept = s, make([]core.Health, 1+c.w.cfg.Zones), 0
	c.endRefills()
}

// serving reports whether a store is one of those in use at present.
func (w *World) serving(store int) bool {
	s := w.set()
	return s.Members == nil || slices.Contains(s.Members, store)
}

// at is the number in the world of a store that a machine numbers i.
func (d *driver) at(i int) int {
	if d.members != nil {
		return d.members[i]
	}
	return d.base + i
}

// errand is a machine that a client drives and that is no lease, such as a
// change of sets.
type errand struct {
	driver
	done func() bool
}

// Operate drives m, which numbers stores as the world does and has begun, until
// done says that it is over. It dies with the process.
func (c *Client) Operate(m machine, done func() bool) {
	e := &errand{done: done}
	e.driver = driver{c: c, m: m, errand: e, timer: never}
	c.errands = append(c.errands, e)
	c.w.refilling++
	e.settle()
}

func (e *errand) settled() {
	if !e.dead && e.done() {
		e.end()
	}
}

func (e *errand) end() {
	if !e.dead {
		e.dead = true
		e.c.w.refilling--
	}
}

package sim

import (
	"slices"

	"github.com/quorumlock/quorum/internal/core"
)

// refill carries one store out of quarantine, as a Locker's keeper does.
type refill struct {
	driver
	m     *core.Refill
	store int
}

// refill begins to carry a store out, unless that is under way.
func (c *Client) refill(store int) {
	if c.closing || c.refills[store] != nil {
		return
	}
	w := c.w
	base, member := w.firstOf(store), store
	if c.set.Members != nil {
		if member = slices.Index(c.set.Members, store); member < 0 {
			return
		}
	}
	cfg := core.RefillConfig{
		Rule: c.set.Rule, Store: member - base, CallLimit: min(w.cfg.TTL/2, w.cfg.CallLimit*2), Bugs: w.cfg.Bugs,
		Request: core.Request{MaxTTL: w.cfg.MaxTTL, Set: c.set.Print},
	}
	if w.zone != nil {
		cfg.Rule = w.zone
	}
	r := &refill{m: core.NewRefill(cfg), store: store}
	r.driver = driver{c: c, m: r.m, refill: r, base: base, members: c.set.Members, timer: never}
	c.refills[store] = r
	w.refilling++
	r.m.Start(c.Now())
	r.settle()
}

// endRefills leaves the stores to others.
func (c *Client) endRefills() {
	for i, r := range c.refills {
		if r != nil {
			r.dead = true
			c.w.refilling--
			c.refills[i] = nil
		}
	}
}

func (r *refill) settled() {
	if r.m.Stage() != core.RefillDone || r.dead {
		return
	}
	r.dead = true
	r.c.refills[r.store] = nil
	r.c.w.refilling--
	if r.m.Quarantined() {
		r.c.w.report.Refills++
		if r.m.Alone() {
			r.c.w.report.Alone++
			r.c.w.restOnClocks()
		}
		r.c.w.emit(Event{What: Refills, Client: r.c.id, Store: r.store})
	}
}

// restOnClocks takes back the claim of token order where it rests on the
// stores' clocks (assumption A3) and those were not left alone.
func (w *World) restOnClocks() {
	for _, f := range w.plan.Faults {
		if f.Kind == ClockStep || f.Kind == ClockRate || f.Kind == ClockFreeze {
			w.order = false
		}
	}
}

// sweep looks at every store at most once in half a MaxTTL: one that
// acquisitions happen not to need would otherwise stay out until they do.
func (c *Client) sweep() {
	now := c.Now()
	if c.swept != 0 && now.Sub(c.swept) < c.w.cfg.MaxTTL/2 {
		return
	}
	c.swept = max(now, 1)
	for i := range c.w.nodes {
		c.refill(i)
	}
}

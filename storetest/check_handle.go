package storetest

import "github.com/quorumlock/quorum"

// second returns a call through another handle of the same server.
func (c *call) second() *call {
	if c.f.Second == nil {
		c.skip("the Factory has no Second")
	}
	other := *c
	other.store = c.f.Second(c.t, c.store)
	return &other
}

var handleChecks = []check{
	{"handle/two handles exclude each other", "two clients of one server would both hold", func(c *call) {
		d := c.second()
		a := owner()
		c.acquire(a)
		d.contended(owner())
		d.extend(a)
		c.extend(a)
	}},
	{"handle/release through the other frees", "what one client released another would still see", func(c *call) {
		d := c.second()
		a := owner()
		c.acquire(a)
		d.release(a)
		c.notHeld(a)
		d.free()
		c.free()
	}},
	{"handle/tokens are of the server", "each client would count for itself", func(c *call) {
		d := c.second()
		last := int64(0)
		for i, h := range []*call{c, d, d, c, d, c} {
			a := owner()
			g := h.acquire(a)
			c.above("the next token", g.Token, last)
			last = g.Token
			[]*call{d, c}[i%2].release(a)
		}
	}},
	{"handle/both name one server", "one server under two names would vote twice", func(c *call) {
		d := c.second()
		g, h := c.acquire(owner()), d.acquire(owner(), key(c.key+" other"))
		if g.Server != h.Server {
			c.failf("Grant.Server = %q and %q through two handles of one server", g.Server, h.Server)
		}
	}},
	{"handle/32 owners over two handles", "two owners would hold one name", func(c *call) {
		d := c.second()
		won := 0
		for _, a := range c.together(func(i int) answer {
			h := []*call{c, d}[i%2]
			g, err := h.tryAcquire(owner())
			return answer{grant: g, err: err}
		}) {
			if a.err == nil {
				won++
			}
		}
		if won != 1 {
			c.failf("%d owners were granted the name at once, want 1", won)
		}
	}},
	{"handle/other set is a mismatch", "clients with different stores would vote in one set", func(c *call) {
		d := c.second()
		c.acquire(owner())
		if r := d.denied(owner(), set(c.set+1), key(c.key+" other")); r.Outcome != quorum.OutcomeMismatch {
			c.failf("Acquire of another set = %v, want a mismatch", r.Outcome)
		}
	}},
}

package storetest

var tokenChecks = []check{
	{"token/grows with every owner", "a stale holder's writes could not be told from its successor's", func(c *call) {
		last := int64(0)
		for range 8 {
			a := owner()
			g := c.acquire(a)
			c.above("the next owner's token", g.Token, last)
			last = g.Token
			c.release(a)
		}
	}},
	{"token/grows with every attempt", "an attempt that was given up would share its token with the next", func(c *call) {
		a := owner()
		last := int64(0)
		for n := uint32(1); n <= 4; n++ {
			g := c.acquire(at(a, n))
			c.above("the next attempt's token", g.Token, last)
			last = g.Token
		}
	}},
	{"token/survives release", "a name would start again below the tokens it has given", func(c *call) {
		a := owner()
		g := c.acquire(a)
		raised := c.extend(a, floor(g.Token+5000)).Token
		c.release(a)
		c.above("the token after a release", c.acquire(owner()).Token, raised)
	}},
	{"token/survives expiry", "a name would start again below the tokens it has given", func(c *call) {
		a := owner()
		g := c.acquire(a, lasting(c.short))
		raised := c.extend(a, floor(g.Token+5000), lasting(c.short)).Token
		c.lapse()
		c.above("the token after an expiry", c.acquire(owner()).Token, raised)
	}},
	{"token/acquire takes a floor above the counter", "a quorum whose counters differ could give a token twice", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a)
		want := g.Token + 12345
		c.equal("the token with a floor above the counter", c.acquire(owner(), floor(want)).Token, want)
	}},
	{"token/acquire passes a floor at the counter", "two owners would have one token", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a)
		c.above("the token with the counter as floor", c.acquire(owner(), floor(g.Token)).Token, g.Token)
	}},
	{"token/floor of a refused acquire raises nothing", "a loser could push the counter ahead of the holder", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.contended(owner(), floor(g.Token+1000))
		c.equal("the holder's token", c.extend(a).Token, g.Token)
		c.release(a)
		if next := c.acquire(owner()).Token; next >= g.Token+1000 {
			c.failf("the next token = %d: a refused Acquire raised the counter to its floor %d", next, g.Token+1000)
		}
	}},
	{"token/grows by little", "2^53 would be used up", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a)
		if next := c.acquire(owner()).Token; next > g.Token+1<<28 {
			c.failf("the next token = %d, %d after the last", next, next-g.Token)
		}
	}},
	{"token/floor out of reach is an error, not contention", "one bad client would use up the tokens of a name", func(c *call) {
		a := owner()
		g := c.acquire(a)
		out := g.Token + 1<<52
		_, err := c.tryExtend(a, floor(out))
		c.fails("Extend with a floor of 2^52 more", err)
		c.equal("the token after it", c.extend(a).Token, g.Token)
		c.release(a)
		for _, m := range []mod{floor(out), floor(1<<53 - 1), floor(1<<63 - 1), repairing(out)} {
			_, err = c.tryAcquire(owner(), m)
			c.fails("Acquire with a floor of 2^52 more", err)
		}
		if next := c.acquire(owner()).Token; next > g.Token+1<<28 {
			c.failf("a refused floor raised the counter from %d to %d", g.Token, next)
		}
	}},
	{"token/of two names are apart", "work on one name would make the tokens of another jump", func(c *call) {
		a, b := owner(), owner()
		other := key(c.key + " other")
		g := c.acquire(a)
		h := c.acquire(b, other)
		c.extend(b, other, floor(h.Token+1000))
		c.equal("the token of the first name", c.extend(a).Token, g.Token)
	}},
}

var repairChecks = []check{
	{"repair/takes the token without increment", "a repaired vote would have another token than its lease", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a)
		want := g.Token + 77
		b := owner()
		c.equal("the repaired vote's token", c.acquire(b, repairing(want)).Token, want)
		c.equal("its token when extended", c.extend(b, floor(want)).Token, want)
		c.contended(owner())
	}},
	{"repair/at the counter is granted", "a lease could not come back to a store that lost only its vote", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a)
		c.equal("the repaired vote's token", c.acquire(owner(), repairing(g.Token)).Token, g.Token)
	}},
	{"repair/on a name never used", "a store that was away could not take part again", func(c *call) {
		a, b := owner(), owner()
		other := c.key + " first"
		want := c.acquire(a, key(other)).Token + 3
		c.equal("the repaired vote's token", c.acquire(b, repairing(want)).Token, want)
		c.release(b)
		c.above("the next owner's token", c.acquire(owner()).Token, want)
	}},
	{"repair/below the counter is refused", "a stale holder would renew after a later one was here", func(c *call) {
		a, b := owner(), owner()
		g := c.acquire(a)
		c.release(a)
		c.acquire(b)
		c.release(b)
		c.denied(a, repairing(g.Token))
		c.notHeld(a)
		c.free()
	}},
	{"repair/beside another owner is refused", "a repair would push out the present holder", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.contended(owner(), repairing(g.Token+50))
		c.equal("the holder's token", c.extend(a).Token, g.Token)
	}},
	{"repair/raises the counter", "the repaired token could be given again", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a)
		b := owner()
		c.acquire(b, repairing(g.Token+500))
		c.release(b)
		c.above("the next owner's token", c.acquire(owner()).Token, g.Token+500)
	}},
	{"repair/replaces an older attempt", "the lease would be blocked by its own leftovers", func(c *call) {
		a := owner()
		g := c.acquire(at(a, 1))
		c.equal("the token", c.acquire(at(a, 2), repairing(g.Token+5)).Token, g.Token+5)
		c.notHeld(at(a, 1))
		c.extend(at(a, 2))
	}},
	{"repair/of an older attempt is refused", "a repair that comes late would undo the younger attempt", func(c *call) {
		a := owner()
		g := c.acquire(at(a, 2))
		c.denied(at(a, 1), repairing(g.Token+5))
		c.equal("the younger attempt's token", c.extend(at(a, 2)).Token, g.Token)
	}},
	{"repair/vote ends like any other", "a dead holder's repaired vote would stay", func(c *call) {
		a := owner()
		g := c.acquire(owner(), key(c.key+" first"))
		c.acquire(a, repairing(g.Token+9), lasting(c.short))
		c.lapse()
		c.notHeld(a)
		c.free()
	}},
}

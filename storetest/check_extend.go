package storetest

var extendChecks = []check{
	{"extend/keeps the vote and its token", "a renewal would look like an interruption", func(c *call) {
		a := owner()
		g := c.acquire(a, lasting(c.short))
		c.equal("the token after Extend", c.extend(a).Token, g.Token)
		c.lapse()
		c.contended(owner())
	}},
	{"extend/never shortens", "a late renewal would end the vote before the holder stops", func(c *call) {
		a := owner()
		c.acquire(a)
		g := c.extend(a, lasting(c.short))
		if g.TTL < c.short {
			c.failf("Extend gave %v, want at least %v", g.TTL, c.short)
		}
		c.lapse()
		c.contended(owner())
	}},
	{"extend/stranger is not held", "a stranger would renew another owner's vote", func(c *call) {
		c.acquire(owner())
		c.notHeld(owner())
	}},
	{"extend/free name is not held", "a lock that nobody took would come into being", func(c *call) {
		a := owner()
		c.notHeld(a)
		c.free()
	}},
	{"extend/only exactly this attempt", "an old attempt would renew the vote of the new one", func(c *call) {
		a := owner()
		c.acquire(at(a, 2))
		c.notHeld(at(a, 1))
		c.notHeld(at(a, 3))
		c.extend(at(a, 2))
	}},
	{"extend/expired vote is none, even if nobody took it", "a holder that slept would go on as if never interrupted", func(c *call) {
		a := owner()
		c.acquire(a, lasting(c.short))
		c.lapse()
		c.notHeld(a)
		c.free()
	}},
	{"extend/expired vote is none after another owner came and went", "a holder that slept would miss what happened meanwhile", func(c *call) {
		a := owner()
		c.acquire(a, lasting(c.short))
		c.lapse()
		c.free()
		c.notHeld(a)
	}},
	{"extend/released vote is none", "a late renewal would bring a released lock back", func(c *call) {
		a := owner()
		c.acquire(a)
		c.release(a)
		c.notHeld(a)
		c.free()
	}},
	{"extend/floor raises token and counter", "a confirmed token could be given again by this store", func(c *call) {
		a := owner()
		g := c.acquire(a)
		floored := g.Token + 1000
		c.equal("the token after Extend with a floor above", c.extend(a, floor(floored)).Token, floored)
		c.release(a)
		c.above("the next owner's token", c.acquire(owner()).Token, floored)
	}},
	{"extend/answers its token where the floor is lower", "the holder could not see that its vote was interrupted", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.needLeaf()
		c.equal("the token after Extend with a floor below", c.extend(a, floor(g.Token-1)).Token, g.Token)
		c.equal("the token after Extend without a floor", c.extend(a, floor(0)).Token, g.Token)
	}},
	{"extend/refused one raises nothing", "owner check and raise would not be one step", func(c *call) {
		a, b := owner(), owner()
		g := c.acquire(a)
		c.notHeld(b, floor(g.Token+1000))
		c.equal("the holder's token", c.extend(a).Token, g.Token)
		c.release(a)
		if next := c.acquire(owner()).Token; next > g.Token+1000 {
			c.failf("the next token = %d: a refused Extend raised the counter above %d", next, g.Token+1000)
		}
	}},
}

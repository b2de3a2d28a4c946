package storetest

import "github.com/quorumlock/quorum"

var sharedChecks = []check{
	{"shared/granted exclusively where the store cannot share", "a reader would believe that others may come in", func(c *call) {
		if c.store.Limits().Shares {
			c.skip("Limits.Shares is true")
		}
		if g := c.acquire(owner(), shared); g.Mode != quorum.ModeExclusive {
			c.failf("Grant.Mode = %s although Limits.Shares is false", g.Mode)
		}
		c.contended(owner(), shared)
	}},
	{"shared/readers hold together", "readers would wait for one another", func(c *call) {
		c.needShares()
		for want := 1; want <= 3; want++ {
			g := c.acquire(owner(), shared)
			if g.Mode != quorum.ModeShared || g.Readers != want {
				c.failf("reader %d was granted %s beside %d readers, want shared and %d", want, g.Mode, g.Readers, want)
			}
		}
	}},
	{"shared/writer is refused beside readers", "a writer would work while others read", func(c *call) {
		c.needShares()
		a, b := owner(), owner()
		c.acquire(a, shared)
		c.acquire(b, shared)
		c.contended(owner())
		c.release(a)
		c.contended(owner())
		c.release(b)
		c.acquire(owner())
	}},
	{"shared/reader is refused beside a writer", "a reader would read while another writes", func(c *call) {
		c.needShares()
		a := owner()
		c.acquire(a)
		c.contended(owner(), shared)
		c.extend(a)
	}},
	{"shared/reader's token is above the writer's before", "a reader's token would not tell what it has seen", func(c *call) {
		c.needShares()
		w := owner()
		g := c.acquire(w)
		c.release(w)
		first := c.acquire(owner(), shared).Token
		c.above("the first reader's token", first, g.Token)
		c.equal("the second reader's token", c.acquire(owner(), shared).Token, first)
	}},
	{"shared/writer's token is above the readers' before", "a writer would have a reader's token", func(c *call) {
		c.needShares()
		r := owner()
		read := c.acquire(r, shared).Token
		c.release(r)
		c.above("the writer's token", c.acquire(owner()).Token, read)
	}},
	{"shared/reader's raised token counts", "a confirmed reader's token could be given to a writer", func(c *call) {
		c.needShares()
		r := owner()
		read := c.acquire(r, shared).Token
		c.equal("the raised token", c.extend(r, shared, floor(read+40)).Token, read+40)
		c.release(r)
		c.above("the writer's token", c.acquire(owner()).Token, read+40)
	}},
	{"shared/reader takes a floor", "a read lease's votes would have different tokens", func(c *call) {
		c.needShares()
		r := owner()
		read := c.acquire(r, shared).Token
		c.equal("the second reader's token", c.acquire(owner(), shared, floor(read+40)).Token, read+40)
		c.equal("the first reader's token", c.extend(r, shared).Token, read)
	}},
	{"shared/each reader ends by itself", "a reader with a short TTL would end the others' votes", func(c *call) {
		c.needShares()
		a, b := owner(), owner()
		c.acquire(a, shared)
		c.acquire(b, shared, lasting(c.short))
		c.lapse()
		c.extend(a, shared)
		c.notHeld(b, shared)
		c.contended(owner())
		c.release(a)
		c.free()
	}},
	{"shared/release leaves the other readers", "one reader would free all the others' votes", func(c *call) {
		c.needShares()
		a, b := owner(), owner()
		c.acquire(a, shared)
		c.acquire(b, shared)
		c.release(a)
		c.notHeld(a, shared)
		c.extend(b, shared)
		c.contended(owner())
	}},
	{"shared/readers are repaired together", "a store that was away could not take readers back", func(c *call) {
		c.needShares()
		a, b := owner(), owner()
		token := c.acquire(owner(), key(c.key+" first")).Token + 3
		c.equal("the first reader's token", c.acquire(a, shared, repairing(token)).Token, token)
		c.equal("the second reader's token", c.acquire(b, shared, repairing(token)).Token, token)
		c.contended(owner(), repairing(token+1))
		c.extend(a, shared)
		c.extend(b, shared)
	}},
	{"shared/younger attempt of a reader is one reader", "a retry would count twice and block its own promotion", func(c *call) {
		c.needShares()
		a := owner()
		c.acquire(at(a, 1), shared)
		if g := c.acquire(at(a, 2), shared); g.Readers != 1 {
			c.failf("Readers = %d after a retry of the only reader, want 1", g.Readers)
		}
		c.notHeld(at(a, 1), shared)
		c.release(at(a, 2))
		c.free()
	}},
	{"shared/extend tells the readers", "a promotion could not see that others read", func(c *call) {
		c.needShares()
		a := owner()
		c.acquire(a, shared)
		c.acquire(owner(), shared)
		if g := c.extend(a, shared); g.Readers != 2 || g.Mode != quorum.ModeShared {
			c.failf("Extend answered %s with %d readers, want shared with 2", g.Mode, g.Readers)
		}
	}},
}

var convertChecks = []check{
	{"convert/only reader is promoted", "a reader would have to let go before it could write", func(c *call) {
		c.needShares()
		a := owner()
		read := c.acquire(at(a, 1), shared).Token
		g := c.acquire(at(a, 2), converting(quorum.ModeExclusive))
		c.above("the writer's token", g.Token, read)
		if g.Mode != quorum.ModeExclusive {
			c.failf("a promotion was granted %s", g.Mode)
		}
		c.contended(owner(), shared)
		c.notHeld(at(a, 1))
		c.extend(at(a, 2))
	}},
	{"convert/promotion beside another reader is refused", "a writer would work while others read", func(c *call) {
		c.needShares()
		a, b := owner(), owner()
		read := c.acquire(at(a, 1), shared).Token
		c.acquire(b, shared)
		r := c.denied(at(a, 2), converting(quorum.ModeExclusive))
		if r.Clean {
			c.failf("a refused promotion says Clean although its read vote is there")
		}
		c.equal("the read vote's token", c.extend(at(a, 1), shared).Token, read)
		c.extend(b, shared)
	}},
	{"convert/promotion without a vote is refused", "an owner whose vote had ended would write on", func(c *call) {
		c.needShares()
		c.denied(at(owner(), 2), converting(quorum.ModeExclusive))
		c.free()
	}},
	{"convert/demotion lets readers in without a gap", "a writer would have to let go before it could read", func(c *call) {
		c.needShares()
		a, b := owner(), owner()
		write := c.acquire(at(a, 1)).Token
		g := c.acquire(at(a, 2), converting(quorum.ModeShared), floor(write))
		c.equal("the reader's token", g.Token, write)
		if g.Mode != quorum.ModeShared || g.Readers != 1 {
			c.failf("a demotion was granted %s with %d readers, want shared with 1", g.Mode, g.Readers)
		}
		c.above("the next reader's token", c.acquire(b, shared).Token, write)
		c.contended(owner())
		c.extend(at(a, 2), shared)
	}},
	{"convert/demotion keeps its token where the floor is lower", "a demotion would lower a token", func(c *call) {
		c.needShares()
		c.needLeaf()
		a := owner()
		write := c.acquire(at(a, 1)).Token
		c.equal("the reader's token", c.acquire(at(a, 2), converting(quorum.ModeShared)).Token, write)
	}},
	{"convert/demotion takes a floor", "a demoted lease's votes would have different tokens", func(c *call) {
		c.needShares()
		a := owner()
		write := c.acquire(at(a, 1)).Token
		c.equal("the reader's token", c.acquire(at(a, 2), converting(quorum.ModeShared), floor(write+9)).Token, write+9)
		c.release(at(a, 2))
		c.above("the next writer's token", c.acquire(owner()).Token, write+9)
	}},
	{"convert/late request of the old mode is refused", "a doubled request would turn a reader into a writer", func(c *call) {
		c.needShares()
		a := owner()
		write := c.acquire(at(a, 1)).Token
		c.acquire(at(a, 2), converting(quorum.ModeShared), floor(write))
		c.denied(at(a, 1))
		c.acquire(owner(), shared)
	}},
	{"convert/ends like any other vote", "a dead writer's promoted vote would stay", func(c *call) {
		c.needShares()
		a := owner()
		c.acquire(at(a, 1), shared, lasting(c.short))
		c.acquire(at(a, 2), converting(quorum.ModeExclusive), lasting(c.short))
		c.lapse()
		c.notHeld(at(a, 2))
		c.free()
	}},
}

var forceChecks = []check{
	{"force/takes the name from its holder", "an operator could not free a stuck name", func(c *call) {
		a, b := owner(), owner()
		held := c.acquire(a).Token
		g := c.acquire(b, kind(quorum.KindForce))
		c.above("the new holder's token", g.Token, held)
		c.notHeld(a)
		c.extend(b)
		c.contended(owner())
	}},
	{"force/on a free name is an acquire", "a name that was just freed could not be forced", func(c *call) {
		c.acquire(owner(), kind(quorum.KindForce))
		c.contended(owner())
	}},
	{"force/removed owner cannot repair", "the removed holder would come back by itself", func(c *call) {
		a, b := owner(), owner()
		held := c.acquire(a).Token
		c.acquire(b, kind(quorum.KindForce))
		c.release(b)
		c.denied(a, repairing(held))
		c.free()
	}},
	{"force/removed owner is told who", "a holder that lost its lock would not know why", func(c *call) {
		a := owner()
		c.acquire(a)
		c.acquire(owner(), kind(quorum.KindForce), label("operator on host-9"))
		g, err := c.tryExtend(a)
		r := c.refused("Extend", g, err)
		if !r.Forced || r.Label != "operator on host-9" {
			c.failf("the removed owner was told %q (Forced %v, Label %q), want Forced and the label of who did it", r.Error(), r.Forced, r.Label)
		}
	}},
	{"force/removes all readers", "a reader would stay beside the new writer", func(c *call) {
		c.needShares()
		a, b := owner(), owner()
		c.acquire(a, shared)
		c.acquire(b, shared)
		c.acquire(owner(), kind(quorum.KindForce))
		c.notHeld(a, shared)
		c.notHeld(b, shared)
	}},
}

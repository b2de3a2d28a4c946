package storetest

import (
	"time"

	"github.com/quorumlock/quorum"
)

var acquireChecks = []check{
	{"acquire/free name is granted", "nothing else works where a free name cannot be taken", func(c *call) {
		g := c.acquire(owner())
		if g.Mode != quorum.ModeExclusive {
			c.failf("an exclusive request was granted %s", g.Mode)
		}
	}},
	{"acquire/second owner is refused", "two owners would hold one name", func(c *call) {
		a, b := owner(), owner()
		c.acquire(a)
		c.contended(b)
		c.extend(a)
	}},
	{"acquire/refusal names the holder and its time left", "a waiter that knows neither can only guess, and its log says nothing", func(c *call) {
		c.acquire(owner(), label("host-7 pid 4711"))
		r := c.contended(owner())
		if r.Label != "host-7 pid 4711" {
			c.failf("the refusal's Label = %q, want the holder's", r.Label)
		}
		if r.Left <= 0 || r.Left > c.ttl+c.store.Limits().Grain+c.ttl {
			c.failf("the refusal's Left = %v, want more than 0 and about %v", r.Left, c.ttl)
		}
	}},
	{"acquire/refusal is clean only for a stranger", "a dirty refusal that claims to be clean is never rolled back", func(c *call) {
		a := owner()
		c.acquire(at(a, 2))
		if r := c.denied(at(a, 1)); r.Clean {
			c.failf("a refusal to an owner whose younger attempt holds says Clean")
		}
		if r := c.contended(owner()); r.Clean && c.store.Limits().Doubles {
			c.failf("a store whose client may send a request twice says Clean")
		}
	}},
	{"acquire/refused owner leaves nothing behind", "the refused one would block the name after the holder has gone", func(c *call) {
		a, b := owner(), owner()
		c.acquire(a)
		c.contended(b)
		c.release(a)
		c.free()
	}},
	{"acquire/names do not meet", "work on one name would wait for work on another", func(c *call) {
		c.acquire(owner())
		c.acquire(owner(), key(c.key+" other"))
	}},
	{"acquire/time given is at least what was asked", "the holder would trust a vote that has ended", func(c *call) {
		l := c.store.Limits()
		for i, ttl := range []time.Duration{c.short, c.short + time.Millisecond, c.short + 777*time.Microsecond, c.ttl - 1} {
			g := c.acquire(owner(), key(c.key+string(rune('a'+i))), lasting(ttl))
			if g.TTL < ttl {
				c.failf("asked for %v, given %v", ttl, g.TTL)
			}
			if l.Grain > 0 && g.TTL > roundUp(ttl, l.Grain)+l.Grain {
				c.failf("asked for %v, given %v with a grain of %v", ttl, g.TTL, l.Grain)
			}
		}
	}},
	{"acquire/previous holder's release is told", "a job cannot know whether its predecessor finished", func(c *call) {
		a := owner()
		c.acquire(a)
		c.release(a)
		if g := c.acquire(owner()); g.Previous == quorum.PreviousExpired {
			c.failf("Previous = %s after a release, want released or unknown", g.Previous)
		}
	}},
	{"acquire/previous holder's expiry is told", "a job cannot know whether its predecessor crashed", func(c *call) {
		c.acquire(owner(), lasting(c.short))
		c.lapse()
		if g := c.acquire(owner()); g.Previous == quorum.PreviousReleased {
			c.failf("Previous = %s after an expiry, want expired or unknown", g.Previous)
		}
	}},
}

var attemptChecks = []check{
	{"attempt/same attempt again is the same vote", "a doubled request would look like a new acquisition", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.equal("the token of the same attempt", c.acquire(a).Token, g.Token)
		c.contended(owner())
	}},
	{"attempt/same attempt never shortens", "a late copy of a request would end a vote early", func(c *call) {
		a := owner()
		c.acquire(a)
		c.acquire(a, lasting(c.short))
		c.lapse()
		c.contended(owner())
		c.extend(a)
	}},
	{"attempt/same attempt again lengthens", "an attempt that was asked twice would trust the longer time", func(c *call) {
		a := owner()
		c.acquire(a, lasting(c.short))
		c.acquire(a)
		c.lapse()
		c.contended(owner())
	}},
	{"attempt/same attempt keeps its mode", "a late copy of an old request would turn a writer into a reader", func(c *call) {
		c.needShares()
		a := owner()
		c.acquire(a)
		c.acquire(a, shared)
		c.contended(owner(), shared)
	}},
	{"attempt/younger replaces older", "a retry would be blocked by its own leftovers", func(c *call) {
		a := owner()
		g1 := c.acquire(a)
		g2 := c.acquire(at(a, 2))
		c.above("the younger attempt's token", g2.Token, g1.Token)
		c.notHeld(at(a, 1))
		c.extend(at(a, 2))
		c.contended(owner())
	}},
	{"attempt/older is refused", "a request that comes late would take back what its successor holds", func(c *call) {
		a := owner()
		g := c.acquire(at(a, 3))
		c.denied(at(a, 2))
		c.equal("the younger attempt's token after it", c.extend(at(a, 3)).Token, g.Token)
		c.notHeld(at(a, 2))
	}},
	{"attempt/late release of attempt 1 leaves attempt 2", "a late roll-back would free the lock that the retry took", func(c *call) {
		a := owner()
		c.acquire(a)
		c.acquire(at(a, 2))
		_ = c.tryRelease(at(a, 1))
		c.contended(owner())
		c.extend(at(a, 2))
	}},
	{"attempt/numbers are of one owner only", "an owner with a high attempt would push out another one", func(c *call) {
		a, b := owner(), owner()
		c.acquire(at(a, 1))
		c.contended(at(b, 9))
		c.notHeld(at(b, 1))
		c.extend(at(a, 1))
	}},
	{"attempt/largest number works", "an attempt number kept in too few bits would wrap", func(c *call) {
		a := owner()
		c.acquire(at(a, 1<<32-2))
		c.acquire(at(a, 1<<32-1))
		c.denied(at(a, 1<<32-2))
		c.denied(at(a, 1))
		c.release(at(a, 1<<32-1))
		c.free()
	}},
}

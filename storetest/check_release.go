package storetest

import (
	"errors"

	"github.com/quorumlock/quorum"
)

var releaseChecks = []check{
	{"release/frees the name", "every lock would block until its TTL", func(c *call) {
		a := owner()
		c.acquire(a)
		c.release(a)
		c.free()
	}},
	{"release/nothing to remove is not held", "a release could not tell that the lock had been lost", func(c *call) {
		if err := c.tryRelease(owner()); !errors.Is(err, quorum.ErrNotHeld) {
			c.failf("Release of a free name = %v, want ErrNotHeld", err)
		}
	}},
	{"release/second time is not held", "a release that was sent twice could not be told from a failure", func(c *call) {
		a := owner()
		c.acquire(a)
		c.release(a)
		if err := c.tryRelease(a); !errors.Is(err, quorum.ErrNotHeld) {
			c.failf("the second Release = %v, want ErrNotHeld", err)
		}
	}},
	{"release/stranger removes nothing", "anybody could free another owner's lock", func(c *call) {
		a := owner()
		c.acquire(a)
		if err := c.tryRelease(at(owner(), 9)); !errors.Is(err, quorum.ErrNotHeld) {
			c.failf("Release by a stranger = %v, want ErrNotHeld", err)
		}
		c.contended(owner())
		c.extend(a)
	}},
	{"release/removes every attempt up to its own", "a roll-back would leave an older attempt behind", func(c *call) {
		a := owner()
		c.acquire(at(a, 2))
		c.release(at(a, 5))
		c.free()
	}},
	{"release/expired vote is not held", "a holder that lost its lock would be told that it ended in order", func(c *call) {
		a := owner()
		c.acquire(a, lasting(c.short))
		c.lapse()
		if err := c.tryRelease(a); !errors.Is(err, quorum.ErrNotHeld) {
			c.failf("Release of an expired vote = %v, want ErrNotHeld", err)
		}
	}},
	{"release/after expiry leaves the next holder", "a late release would free another owner's lock", func(c *call) {
		a, b := owner(), owner()
		c.acquire(a, lasting(c.short))
		c.lapse()
		c.acquire(b)
		_ = c.tryRelease(a)
		c.contended(owner())
		c.extend(b)
	}},
	{"release/second time after the next holder came", "a release whose answer was lost is sent again, and would free a later lock", func(c *call) {
		a, b := owner(), owner()
		c.acquire(a)
		c.release(a)
		c.acquire(b)
		if err := c.tryRelease(a); !errors.Is(err, quorum.ErrNotHeld) {
			c.failf("the second Release = %v, want ErrNotHeld", err)
		}
		c.extend(b)
		c.contended(owner())
	}},
	{"release/same attempt may come back where not entombed", "a retry of the same attempt would be refused for no reason", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a)
		c.above("the token after the way back", c.acquire(at(a, 2)).Token, g.Token)
	}},
	{"entomb/late acquire is refused", "an acquire that was delayed would leave an orphan behind", func(c *call) {
		a := owner()
		_ = c.tryRelease(at(a, 2), entomb)
		c.denied(at(a, 1))
		c.denied(at(a, 2))
		c.free()
	}},
	{"entomb/late repair is refused", "a repair that was delayed would bring a released lease back", func(c *call) {
		a := owner()
		g := c.acquire(a)
		c.release(a, entomb)
		c.denied(a, repairing(g.Token))
		c.free()
	}},
	{"entomb/next attempt is granted", "a call that was rolled back once could never succeed", func(c *call) {
		a := owner()
		c.acquire(at(a, 1))
		c.release(at(a, 1), entomb)
		c.acquire(at(a, 2))
		c.denied(at(a, 1))
		c.extend(at(a, 2))
	}},
	{"entomb/refuses only its own owner", "one owner's roll-back would lock out another", func(c *call) {
		_ = c.tryRelease(at(owner(), 9), entomb)
		c.free()
	}},
	{"entomb/leaves a younger attempt", "a late roll-back would free the lock that the retry took", func(c *call) {
		a := owner()
		c.acquire(at(a, 2))
		_ = c.tryRelease(at(a, 1), entomb)
		c.extend(at(a, 2))
		c.contended(owner())
	}},
	{"entomb/of a younger attempt outlasts one of an older", "a late roll-back of attempt 1 would let a late acquire of attempt 2 in", func(c *call) {
		a := owner()
		_ = c.tryRelease(at(a, 3), entomb)
		_ = c.tryRelease(at(a, 1), entomb)
		c.denied(at(a, 2))
		c.denied(at(a, 3))
	}},
}

package storetest

import "time"

var expiryChecks = []check{
	{"expiry/expired name is free", "a holder that died would block the name for ever", func(c *call) {
		a, b := owner(), owner()
		g := c.acquire(a, lasting(c.short))
		c.lapse()
		c.above("the successor's token", c.acquire(b).Token, g.Token)
		c.notHeld(a)
	}},
	{"expiry/not before its time", "a rival would get in while the holder trusts its vote", func(c *call) {
		c.notBefore(func() { c.acquire(owner(), lasting(c.short)) })
	}},
	{"expiry/not before its time when extended", "a rival would get in while the holder trusts its renewal", func(c *call) {
		a := owner()
		c.acquire(a, lasting(c.short))
		if c.f.Advance != nil {
			c.f.Advance(c.short / 2)
		}
		c.notBefore(func() { c.extend(a, lasting(c.short)) })
	}},
	{"expiry/other names are not affected", "the end of one vote would free another", func(c *call) {
		a := owner()
		other := key(c.key + " other")
		c.acquire(a, other)
		c.acquire(owner(), lasting(c.short))
		c.lapse()
		c.extend(a, other)
		c.contended(owner(), other)
	}},
}

// notBefore takes a vote of the short TTL by give and demands that no rival
// gets in earlier. In real time it is measured from before the vote's request
// left, as a holder does, until after the rival's answer came, so that a slow
// machine cannot make it fail; 1 % is what two clocks may differ in rate.
func (c *call) notBefore(give func()) {
	if c.f.Advance != nil {
		give()
		c.f.Advance(c.short - c.short/20)
		c.contended(owner())
		c.f.Advance(c.short/20 + c.store.Limits().Grain + time.Millisecond)
		c.acquire(owner())
		return
	}
	start := time.Now()
	give()
	c.await("the vote to end", 3*c.short+patience, func() bool {
		_, err := c.tryAcquire(owner())
		return err == nil
	})
	if took := time.Since(start); took < c.short-c.short/100 {
		c.failf("a vote given for %v was taken over after %v", c.short, took)
	}
}

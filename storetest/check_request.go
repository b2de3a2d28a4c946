package storetest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

var requestChecks = []check{
	{"limits/name and limits do not change", "clients would differ about the set and its fingerprint", func(c *call) {
		again := c.f.New(c.t)
		if c.store.Name() == "" || c.store.Name() != again.Name() {
			c.failf("Name() = %q and then %q, want one name", c.store.Name(), again.Name())
		}
		if c.store.Limits() != again.Limits() {
			c.failf("Limits() = %+v and then %+v", c.store.Limits(), again.Limits())
		}
	}},
	{"limits/forgetting store can leave quarantine", "once restarted it would never vote again", func(c *call) {
		if !c.store.Limits().Forgets {
			c.skip("Limits.Forgets is false")
		}
		if _, ok := quorum.As[quorum.HighWater](c.store); !ok {
			c.failf("Limits.Forgets is true and the store is no HighWater")
		}
	}},
	{"limits/shortest TTL is taken", "a Locker would be refused a TTL that Limits allow", func(c *call) {
		c.needLeaf() // a composite must also be fast enough for it
		shortest := max(c.store.Limits().MinTTL, time.Millisecond)
		c.acquire(owner(), lasting(shortest))
	}},
	{"request/TTL of nothing is not for ever", "a zero would mean no expiry to a server", func(c *call) {
		for _, ttl := range []time.Duration{0, -time.Second} {
			if _, err := c.tryAcquire(owner(), lasting(ttl)); err == nil {
				c.lapse()
			}
			c.free()
		}
	}},
	{"request/other set is a mismatch", "clients with different stores would vote in one set", func(c *call) {
		a := owner()
		g := c.acquire(a)
		_, err := c.tryAcquire(owner(), set(c.set+1), key(c.key+" other"))
		if !errors.Is(err, quorum.ErrMismatch) {
			c.failf("Acquire by a client of another set = %v, want ErrMismatch", err)
		}
		if _, err = c.tryExtend(a, set(c.set+1)); !errors.Is(err, quorum.ErrMismatch) {
			c.failf("Extend by a client of another set = %v, want ErrMismatch", err)
		}
		if errors.Is(err, quorum.ErrHeld) || errors.Is(err, quorum.ErrNotHeld) {
			c.failf("a mismatch reads as contention or loss: %v", err)
		}
		c.equal("the holder's token", c.extend(a).Token, g.Token)
		c.needLeaf() // a new member of a composite serves the set that it meets first
		c.free(key(c.key + " other"))
	}},
	{"request/label may be empty, long or strange", "text for people would break the store", func(c *call) {
		for i, l := range []string{"", strings.Repeat("x", 256), "a\"b'c\\d\n\t{}%s", "\U0001F512 é"} {
			k := key(c.key + string(rune('a'+i)))
			c.acquire(owner(), k, label(l))
			if r := c.contended(owner(), k); r.Label != l {
				c.failf("the holder's label = %q, want %q", r.Label, l)
			}
		}
	}},
	{"request/owner of any bytes", "an owner's ID would be cut or taken for text", func(c *call) {
		for i, id := range []quorum.OwnerID{{}, {0, 1}, {255, 0, 255}, {'{', '}', '\'', '"', '\\', '\n'}} {
			o, k := quorum.Owner{ID: id, Attempt: 1}, key(c.key+string(rune('a'+i)))
			c.acquire(o, k)
			near := o
			near.ID[15] ^= 1
			c.contended(near, k)
			c.notHeld(near, k)
			c.release(o, k)
		}
	}},
	{"context/cancelled one does nothing", "a caller that gave up would leave a vote behind", func(c *call) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		c.without(ctx, context.Canceled)
	}},
	{"context/ended one does nothing", "a caller whose time is over would leave a vote behind", func(c *call) {
		ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second))
		defer cancel()
		c.without(ctx, context.DeadlineExceeded)
	}},
	{"context/may end after the call", "a vote would die with the context that asked for it", func(c *call) {
		a := owner()
		ctx, cancel := context.WithCancel(context.Background())
		g, err := c.store.Acquire(ctx, c.request(a))
		cancel()
		c.granted("Acquire", a, g, err)
		c.contended(owner())
		c.extend(a)
	}},
	{"secret/no error shows the owner", "whoever reads a log could release the lock", func(c *call) {
		a, b := owner(), owner()
		c.acquire(a)
		_, held := c.tryAcquire(b)
		_, lost := c.tryExtend(b)
		_, mismatch := c.tryExtend(a, set(c.set+1))
		_, reach := c.tryExtend(a, floor(1<<53-1))
		_, old := c.tryAcquire(at(a, 0))
		_, invalid := c.tryAcquire(b, key(""))
		none := c.tryRelease(b)
		for _, err := range []error{held, lost, mismatch, reach, old, invalid, none} {
			c.hides(a, err)
			c.hides(b, err)
			if refusal := (*quorum.RefusedError)(nil); errors.As(err, &refusal) {
				c.hides(a, *refusal)
				c.hides(b, *refusal)
			}
		}
	}},
}

// without demands that no verb does anything under an ended context.
func (c *call) without(ctx context.Context, cause error) {
	a, b := owner(), owner()
	g := c.acquire(a)
	_, acquired := c.store.Acquire(ctx, c.request(b, key(c.key+" other")))
	_, extended := c.store.Extend(ctx, c.request(a, floor(g.Token+1000)))
	released := c.store.Release(ctx, c.request(a))
	for verb, err := range map[string]error{"Acquire": acquired, "Extend": extended, "Release": released} {
		if !errors.Is(err, cause) {
			c.failf("%s = %v, want an error that matches %v", verb, err, cause)
		}
		if errors.Is(err, quorum.ErrHeld) || errors.Is(err, quorum.ErrNotHeld) {
			c.failf("%s = %v: that reads as contention or loss", verb, err)
		}
	}
	c.free(key(c.key + " other"))
	c.equal("the holder's token", c.extend(a).Token, g.Token)
}

package storetest

import (
	"strings"

	"github.com/quorumlock/quorum"
)

// inspect reads the name, or skips the check where the store cannot.
func (c *call) inspect(mods ...mod) quorum.State {
	i, ok := quorum.As[quorum.Inspector](c.store)
	if !ok {
		c.skip("the store is no Inspector")
	}
	ctx, cancel := c.context()
	defer cancel()
	s, err := i.Inspect(ctx, c.request(quorum.Owner{}, mods...))
	if err != nil {
		c.fatalf("Inspect = %v", err)
	}
	return s
}

var inspectChecks = []check{
	{"inspect/shows the holder", "nobody could see who holds a lock", func(c *call) {
		a := owner()
		g := c.acquire(a, label("host-7 pid 4711"))
		s := c.inspect()
		if len(s.Holders) != 1 {
			c.fatalf("Inspect shows %d holders, want 1", len(s.Holders))
		}
		h := s.Holders[0]
		if h.Label != "host-7 pid 4711" || h.Token != g.Token || h.Mode != quorum.ModeExclusive || h.Owner != a.Digest() {
			c.failf("Inspect shows label %q, token %d, %s, owner %q; want %q, %d, exclusive, %q",
				h.Label, h.Token, h.Mode, h.Owner, "host-7 pid 4711", g.Token, a.Digest())
		}
		if h.Left <= 0 || h.Left > g.TTL+c.store.Limits().Grain+c.ttl {
			c.failf("Inspect shows %v left, want more than 0 and about %v", h.Left, g.TTL)
		}
		if s.Counter != 0 && s.Counter < g.Token {
			c.failf("Inspect shows counter %d below the token %d", s.Counter, g.Token)
		}
	}},
	{"inspect/free name has no holder", "a lock that is free would look held", func(c *call) {
		if s := c.inspect(); len(s.Holders) != 0 {
			c.failf("Inspect of a name never used shows %+v", s.Holders)
		}
		a := owner()
		c.acquire(a)
		c.release(a)
		if s := c.inspect(); len(s.Holders) != 0 {
			c.failf("Inspect of a released name shows %+v", s.Holders)
		}
	}},
	{"inspect/expired vote is no holder", "a dead holder would look alive", func(c *call) {
		c.inspect()
		c.acquire(owner(), lasting(c.short))
		c.lapse()
		if s := c.inspect(); len(s.Holders) != 0 {
			c.failf("Inspect shows %+v after its end", s.Holders)
		}
	}},
	{"inspect/shows every reader", "an operator would not know whom to wait for", func(c *call) {
		c.needShares()
		c.inspect()
		want := map[string]bool{}
		for _, l := range []string{"one", "two", "three"} {
			c.acquire(owner(), shared, label(l))
			want[l] = true
		}
		for _, h := range c.inspect().Holders {
			if h.Mode != quorum.ModeShared {
				c.failf("reader %q is shown as %s", h.Label, h.Mode)
			}
			delete(want, h.Label)
		}
		if len(want) > 0 {
			c.failf("Inspect does not show %v", want)
		}
	}},
	{"inspect/changes nothing", "looking at a lock would keep or break it", func(c *call) {
		a := owner()
		g := c.acquire(a, lasting(c.short))
		for range 3 {
			c.inspect()
		}
		c.equal("the holder's token", c.extend(a, lasting(c.short)).Token, g.Token)
		c.lapse()
		c.free()
	}},
	{"inspect/hides the owner", "whoever looks could release the lock", func(c *call) {
		a := owner()
		c.acquire(a)
		s := c.inspect()
		c.hides(a, s)
		for _, h := range s.Holders {
			if strings.Contains(strings.ToLower(h.Owner), a.Hex()) {
				c.failf("Inspect shows the owner's ID")
			}
		}
	}},
}

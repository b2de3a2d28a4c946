package storetest

import (
	"errors"
	"time"

	"github.com/quorumlock/quorum"
)

// stepBits is how many tokens one step holds, as documented: a store that was
// raised to step G gives tokens above G·2^26.
const stepBits = 26

func (c *call) needHighWater() quorum.HighWater {
	h, ok := quorum.As[quorum.HighWater](c.store)
	if !ok {
		c.skip("the store is no HighWater: it never forgets")
	}
	return h
}

func (c *call) step(h quorum.HighWater) quorum.Step {
	ctx, cancel := c.context()
	defer cancel()
	s, err := h.ReadStep(ctx, c.request(quorum.Owner{}))
	if err != nil {
		c.fatalf("ReadStep = %v", err)
	}
	return s
}

func (c *call) tryRaise(h quorum.HighWater, o quorum.Raise) error {
	ctx, cancel := c.context()
	defer cancel()
	return h.Raise(ctx, c.request(quorum.Owner{}), o)
}

func (c *call) raise(h quorum.HighWater, o quorum.Raise) {
	if err := c.tryRaise(h, o); err != nil {
		c.fatalf("Raise(%+v) = %v", o, err)
	}
}

// forget puts the store in quarantine by an operator's word and returns which
// it is in.
func (c *call) forget(h quorum.HighWater) string {
	if c.f.Advance != nil {
		c.f.Advance(time.Millisecond) // so that two quarantines end at different times
	}
	c.raise(h, quorum.Raise{Forgotten: true})
	s := c.step(h)
	if s.Quarantine == "" {
		c.fatalf("the store votes although it was told that it forgot")
	}
	return s.Quarantine
}

// wait returns when the store's quarantine is over. It counts from when a
// request meets the store, so wait does so first.
func (c *call) wait(h quorum.HighWater) quorum.Step {
	s := c.step(h)
	if c.f.Advance != nil {
		c.f.Advance(c.maxTTL + c.store.Limits().Grain + time.Millisecond)
	}
	c.await("the quarantine to be over", c.maxTTL+patience, func() bool {
		s = c.step(h)
		return s.Over
	})
	return s
}

// quarantined demands that an Acquire is refused because of quarantine.
func (c *call) quarantined(o quorum.Owner, mods ...mod) *quorum.RefusedError {
	g, err := c.tryAcquire(o, mods...)
	r := c.refused("Acquire in quarantine", g, err)
	if r.Outcome != quorum.OutcomeQuarantined {
		c.failf("Acquire in quarantine = %v (%v), want outcome quarantined", err, r.Outcome)
	}
	if errors.Is(err, quorum.ErrHeld) {
		c.failf("quarantine reads as contention: %v", err)
	}
	return r
}

var quarantineChecks = []check{
	{"quarantine/operator's word begins one", "an operator who restored a backup could not say so", func(c *call) {
		h := c.needHighWater()
		c.forget(h)
		r := c.quarantined(owner())
		if r.Left <= 0 || r.Left > c.maxTTL+c.store.Limits().Grain+time.Second {
			c.failf("the quarantine's Left = %v, want more than 0 and at most %v", r.Left, c.maxTTL)
		}
		if c.step(h).Over {
			c.failf("the quarantine is over at once, want after MaxTTL")
		}
	}},
	{"quarantine/no kind of new vote", "a store that forgot would let a second owner in", func(c *call) {
		h := c.needHighWater()
		a := owner()
		c.acquire(a)
		c.forget(h)
		c.quarantined(owner(), key(c.key+" other"))
		c.quarantined(owner(), kind(quorum.KindForce))
		c.quarantined(owner(), shared, key(c.key+" other"))
		c.extend(a)
	}},
	{"quarantine/extend goes on", "every holder would lose a vote that the store still has", func(c *call) {
		h := c.needHighWater()
		a := owner()
		g := c.acquire(a)
		c.forget(h)
		c.equal("the token", c.extend(a, floor(g.Token+3)).Token, g.Token+3)
	}},
	{"quarantine/repair goes on", "a lease could not come back to a store that forgot it", func(c *call) {
		h := c.needHighWater()
		a := owner()
		token := c.acquire(owner(), key(c.key+" first")).Token + 3
		c.forget(h)
		c.equal("the repaired vote's token", c.acquire(a, repairing(token)).Token, token)
		c.extend(a)
	}},
	{"quarantine/release goes on", "a released lock would stay in the store", func(c *call) {
		h := c.needHighWater()
		a := owner()
		c.acquire(a)
		c.forget(h)
		c.release(a)
		c.notHeld(a)
	}},
	{"quarantine/demotion goes on, promotion does not", "a writer could not let readers in, or a reader would write beside one forgotten", func(c *call) {
		c.needShares()
		h := c.needHighWater()
		w, r := owner(), owner()
		other := key(c.key + " other")
		c.acquire(at(w, 1))
		c.acquire(at(r, 1), shared, other)
		c.forget(h)
		c.acquire(at(w, 2), converting(quorum.ModeShared))
		c.quarantined(at(r, 2), converting(quorum.ModeExclusive), other)
		c.extend(at(r, 1), shared, other)
	}},
	{"quarantine/an operator's fresh ends it at once", "a new set could not be used", func(c *call) {
		h := c.needHighWater()
		q := c.forget(h)
		c.raise(h, quorum.Raise{Quarantine: q, Fresh: true})
		if s := c.step(h); s.Quarantine != "" {
			c.failf("the store is still in quarantine %q", s.Quarantine)
		}
		c.free()
	}},
	{"quarantine/no leaving before its time", "a vote that the store forgot may still be trusted", func(c *call) {
		h := c.needHighWater()
		q := c.forget(h)
		step := c.step(h).Step
		for _, o := range []quorum.Raise{{Quarantine: q, Step: step + 5}, {Quarantine: q, Step: step + 5, Alone: true}} {
			if err := c.tryRaise(h, o); err == nil {
				c.failf("Raise(%+v) before the quarantine's time was over = nil, want a refusal", o)
			}
		}
		c.quarantined(owner())
	}},
	{"quarantine/record is read while it votes", "a store that forgot could not leave by its peers' word", func(c *call) {
		s := c.step(c.needHighWater())
		if s.Quarantine != "" || s.Step < 0 {
			c.failf("ReadStep of a voting store = %+v", s)
		}
		c.acquire(owner())
		if again := c.step(c.needHighWater()); again.Step < s.Step || again.Base < s.Base {
			c.failf("the record went back from %+v to %+v", s, again)
		}
	}},
	{"request/TTL beyond MaxTTL is refused", "a store that forgot would vote again before the forgotten vote ends", func(c *call) {
		c.needHighWater()
		_, err := c.tryAcquire(owner(), lasting(c.maxTTL+time.Minute))
		c.fails("Acquire for longer than MaxTTL", err)
		c.free()
	}},
}

// The checks of leaving count with a short MaxTTL where the suite waits in
// real time; newCall knows them by their name.
var forgetChecks = []check{
	{"leaving/raised store votes above the step", "a store that forgot would give old tokens again", func(c *call) {
		h := c.needHighWater()
		a := owner()
		c.acquire(a)
		c.release(a)
		c.forget(h)
		s := c.wait(h)
		c.quarantined(owner())
		c.raise(h, quorum.Raise{Quarantine: s.Quarantine, Step: s.Step + 10})
		c.above("the token of a name whose counter survived", c.acquire(owner()).Token, (s.Step+10)<<stepBits)
		c.above("the token of a fresh name", c.acquire(owner(), key(c.key+" other")).Token, (s.Step+10)<<stepBits)
		if after := c.step(h); after.Quarantine != "" || after.Step <= s.Step+10 || after.Base <= (s.Step+10)<<stepBits {
			c.failf("the record after Raise to %d = %+v", s.Step+10, after)
		}
	}},
	{"leaving/raise meant for an earlier quarantine is refused", "a store would vote again on the word of a quorum that was read too early", func(c *call) {
		h := c.needHighWater()
		first := c.forget(h)
		c.raise(h, quorum.Raise{Quarantine: first, Fresh: true})
		second := c.forget(h)
		if first == second {
			c.failf("two quarantines have one name %q", first)
		}
		s := c.wait(h)
		if err := c.tryRaise(h, quorum.Raise{Quarantine: first, Step: s.Step + 5}); err == nil {
			c.failf("a Raise meant for an earlier quarantine = nil, want a refusal")
		}
		c.quarantined(owner())
	}},
	{"leaving/doubled raise does nothing more", "a request that was sent twice would lift the tokens again", func(c *call) {
		h := c.needHighWater()
		c.forget(h)
		s := c.wait(h)
		o := quorum.Raise{Quarantine: s.Quarantine, Step: s.Step + 5}
		c.raise(h, o)
		before := c.step(h)
		o.Step += 1000
		_ = c.tryRaise(h, o)
		if after := c.step(h); after.Base != before.Base || after.Step > before.Step+1 {
			c.failf("a second Raise moved the record from %+v to %+v", before, after)
		}
	}},
	{"leaving/alone by the store's clock", "a lone store that forgot would never vote again", func(c *call) {
		h := c.needHighWater()
		a := owner()
		token := c.acquire(a).Token
		c.release(a)
		c.forget(h)
		s := c.wait(h)
		c.raise(h, quorum.Raise{Quarantine: s.Quarantine, Step: s.Step, Alone: true})
		c.above("the next token", c.acquire(owner()).Token, max(token, s.Step<<stepBits))
	}},
	{"leaving/restarted store does not vote", "an owner whose vote was forgotten and another one would both hold", func(c *call) {
		h := c.needRestart()
		c.acquire(owner())
		c.f.Restart(c.t, c.store)
		c.quarantined(owner())
		c.quarantined(owner(), kind(quorum.KindForce), key(c.key+" other"))
		if s := c.step(h); s.Quarantine == "" {
			c.failf("the record does not show the quarantine")
		}
	}},
	{"leaving/restarted store takes a repair", "a holder could not put its lease back on a store that forgot it", func(c *call) {
		c.needRestart()
		a := owner()
		token := c.acquire(a).Token
		c.f.Restart(c.t, c.store)
		c.equal("the repaired vote's token", c.acquire(a, repairing(token)).Token, token)
		c.extend(a)
	}},
	{"leaving/restarted store is raised above what was given", "a name would start again below the tokens it has given", func(c *call) {
		h := c.needRestart()
		a := owner()
		known := c.step(h).Step
		token := c.acquire(a).Token
		c.f.Restart(c.t, c.store)
		s := c.wait(h)
		c.raise(h, quorum.Raise{Quarantine: s.Quarantine, Step: max(known, s.Step, token>>stepBits)})
		c.above("the token after the restart", c.acquire(owner()).Token, token)
	}},
	{"leaving/two restarts are two quarantines", "the second restart would be taken for the first, and end too early", func(c *call) {
		h := c.needRestart()
		c.f.Restart(c.t, c.store)
		c.quarantined(owner())
		first := c.wait(h)
		c.f.Restart(c.t, c.store)
		c.quarantined(owner())
		if s := c.step(h); s.Quarantine == first.Quarantine || s.Over {
			c.failf("after the second restart the record = %+v, want another quarantine than %q and not over", s, first.Quarantine)
		}
		if err := c.tryRaise(h, quorum.Raise{Quarantine: first.Quarantine, Step: first.Step}); err == nil {
			c.failf("a Raise meant for the first restart = nil after the second")
		}
		c.quarantined(owner())
	}},
}

func (c *call) needRestart() quorum.HighWater {
	if c.f.Restart == nil {
		c.skip("the Factory has no Restart")
	}
	return c.needHighWater()
}

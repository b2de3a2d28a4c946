package model

import (
	"fmt"

	"github.com/quorumlock/quorum/internal/core"
)

// next is the token that a new vote would get. After a writer's number even a
// reader takes a new one; the readers that follow share it until the next
// writer comes.
func (c *call) next(mode core.Mode) int64 {
	counter := c.name.Counter
	if !c.name.Known {
		counter = c.rec.start()
	}
	if mode == core.Exclusive || c.name.Writer {
		return max(counter+1, c.req.Floor, c.rec.Base+1)
	}
	return max(counter, c.req.Floor, c.rec.Base, 1)
}

// count raises the counter to a token given to a reader or a writer.
func (c *call) count(token int64, writer bool) {
	n := c.name
	if !n.Known {
		n.Known, n.Writer, n.Counter = true, false, c.rec.start()
	}
	switch {
	case token > n.Counter:
		n.Counter, n.Writer = token, writer
	case token == n.Counter && writer:
		n.Writer = true
	}
	c.rec.cover(n.Counter, c.now)
}

// keep records v as the vote of the request's owner, in place of that of an
// earlier attempt. It ends no sooner than that one did.
func (c *call) keep(v Vote, writer bool) core.Answer {
	v.Owner, v.Label, v.Since = c.req.Owner, c.req.Label, c.now
	if own := c.name.vote(v.Owner.ID); own != nil {
		v.Until = own.Until
		if v.Mode == own.Mode {
			v.Since = own.Since
		}
	}
	c.count(v.Token, writer)
	return c.prolong(c.name.put(v))
}

// prolong lets the vote last for the TTL that was asked, or as long as it does
// anyway, and the counter beyond it.
func (c *call) prolong(v *Vote) core.Answer {
	v.Until = max(v.Until, c.now.Add(c.req.TTL))
	c.name.Keep = max(c.name.Keep, v.Until.Add(core.CounterRest))
	c.name.unqueue(v.Owner.ID) // who has a vote waits for none
	return core.Answer{
		Outcome:  core.Granted,
		Mode:     v.Mode,
		Previous: c.name.Last,
		Token:    v.Token,
		TTL:      v.Until.Sub(c.now),
		Readers:  c.name.readers(),
		Ticket:   int64(c.now),
	}
}

// contended refuses because of another owner's vote.
func (c *call) contended(by *Vote) core.Answer {
	a := c.refuse(core.Contended)
	a.Mode, a.Left = by.Mode, by.Until.Sub(c.now)
	if !a.Forced {
		a.Label = by.Label
	}
	return a
}

// refuse says no, and whether anything of the owner is here.
func (c *call) refuse(o core.Outcome) core.Answer {
	a := core.Answer{
		Outcome: o,
		Clean:   c.clean(),
		Token:   c.name.Counter,
		Readers: c.name.readers(),
	}
	if label, ok := c.name.forcedBy(c.req.Owner.ID); ok {
		a.Forced, a.Label = true, label
	}
	return a
}

// clean reports whether nothing of the request's owner is here.
func (c *call) clean() bool {
	return c.name.vote(c.req.Owner.ID) == nil && c.name.place(c.req.Owner.ID) < 0
}

func (c *call) mismatch() core.Answer {
	return core.Answer{
		Outcome: core.Mismatch,
		Clean:   c.name != nil && c.clean(),
		Reason:  fmt.Sprintf("it serves %s and was asked for the set %016x: do all clients list the same stores, strategy and MaxTTL?", c.rec.sets(), c.req.Set),
	}
}

func invalid(why string) core.Answer {
	return core.Answer{Outcome: core.Undelivered, Reason: why}
}

func exhausted() core.Answer {
	return invalid(fmt.Sprintf("no token is left below %d", core.TokenLimit))
}

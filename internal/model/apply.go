package model

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Apply does what one request asks of a store, in place, and answers. It is
// the whole table of the protocol. What concerns the record alone ([OfRecord])
// needs no name and takes nil.
//
// A request that is out of range is answered Undelivered with a reason: it is
// a mistake of its sender and never contention, and nothing of it stays.
func Apply(rec *Record, name *Name, req core.Request, now Time) core.Answer {
	a, _ := Carry(rec, name, req, now)
	return a
}

// Carry is Apply, and also returns what there is to tell to those who watch
// the name, in its order.
func Carry(rec *Record, name *Name, req core.Request, now Time) (core.Answer, []core.Wake) {
	c := call{rec: rec, name: name, req: &req, now: now}
	a := c.carry()
	if c.settled {
		c.turns()
		if c.ended && (len(name.Queue) == 0 || req.Kind == core.Force) {
			c.tell(core.Wake{Kind: core.WakeChanged})
		}
	}
	return a, c.wakes
}

func (c *call) carry() core.Answer {
	rec, req, now := c.rec, c.req, c.now
	switch req.Verb {
	case core.Release:
		return c.release()
	case core.ReadSets:
		return core.Answer{Outcome: core.Granted, Sets: rec.sets()}
	case core.Serve:
		return rec.serve(req, now)
	}
	// The fingerprint comes first: the MaxTTL of a stranger must neither
	// shorten a quarantine nor bring the end of a vote near.
	if !rec.Admits(req.Set) {
		return c.mismatch()
	}
	if req.MaxTTL <= 0 {
		return invalid(fmt.Sprintf("MaxTTL %v is not positive", req.MaxTTL))
	}
	rec.enroll(req.Set)
	rec.settle(req.MaxTTL, now)
	switch req.Verb {
	case core.ReadStep:
		return rec.readStep(now)
	case core.Raise:
		return rec.raise(req, now)
	}
	c.settle(req.MaxTTL)
	if why := c.outOfRange(); why != "" {
		return invalid(why)
	}
	if req.Verb == core.Extend {
		return c.extend()
	}
	return c.acquire()
}

// OfRecord reports whether a verb concerns a store's record and no name.
func OfRecord(v core.Verb) bool { return v >= core.ReadStep }

// call is one request being carried out.
type call struct {
	rec  *Record
	name *Name
	req  *core.Request
	now  Time

	settled bool // the name was brought up to now
	ended   bool // a vote ended, or a place in line that kept others from one
	wakes   []core.Wake
}

func (c *call) tell(w core.Wake) { c.wakes = append(c.wakes, w) }

func (c *call) settle(maxTTL time.Duration) {
	live := len(c.name.Votes)
	c.name.settle(c.rec, maxTTL, c.now)
	c.settled, c.ended = true, len(c.name.Votes) < live
}

// outOfRange says what is wrong with a TTL or a floor, if anything is. The
// reach of a floor is measured from the clock and the base; measured from the
// step it would be a ratchet, since a floor moves the step.
func (c *call) outOfRange() string {
	r := c.req
	reach := min(max(c.now.step()<<core.StepBits, c.rec.Base)+core.FloorReach, core.TokenLimit-1)
	switch {
	case r.TTL <= 0 || r.TTL > r.MaxTTL:
		return fmt.Sprintf("TTL %v is not between 0 and MaxTTL %v", r.TTL, r.MaxTTL)
	case r.Floor < 0 || r.Floor > reach:
		return fmt.Sprintf("floor %d is not between 0 and %d", r.Floor, reach)
	case r.Verb != core.Acquire:
	case r.Kind == core.Repair && r.Floor == 0:
		return "a repair without a token"
	case r.Wait.Queued() && (r.Ticket < 0 || r.Keep <= 0 || r.Keep > core.KeepMax || r.Claim <= 0 || r.Claim > r.TTL):
		return fmt.Sprintf("ticket %d is below 0, keep %v not between 0 and %v, or claim %v not between 0 and the TTL %v",
			r.Ticket, r.Keep, core.KeepMax, r.Claim, r.TTL)
	}
	return ""
}

func (c *call) acquire() core.Answer {
	r := c.req
	own := c.name.vote(r.Owner.ID)
	switch {
	case c.rec.Standing == Quarantined && c.newToken():
		a := c.refuse(core.Quarantined)
		a.Left = c.rec.left(c.now)
		return a
	case own != nil && own.Owner.Attempt > r.Owner.Attempt, c.name.entombed(r.Owner), c.name.outlived(r.Owner):
		// A late request. Whoever sent it has gone on, or has released.
		return c.refuse(core.Contended)
	}
	switch r.Kind {
	case core.Repair:
		return c.repair(own)
	case core.Convert:
		return c.convert(own)
	case core.Force:
		return c.take(own, core.Exclusive)
	}
	if own != nil && own.Owner == r.Owner {
		return c.prolong(own)
	}
	if r.Wait.Queued() {
		return c.wait(own)
	}
	return c.take(own, r.Mode)
}

// newToken reports whether the request asks for a token that was not given
// before. A store in quarantine gives none, and carries on all the rest.
func (c *call) newToken() bool {
	switch c.req.Kind {
	case core.Repair:
		return false
	case core.Convert:
		return c.req.Mode == core.Exclusive
	}
	return true
}

// take gives a new vote.
func (c *call) take(own *Vote, mode core.Mode) core.Answer {
	force := c.req.Kind == core.Force
	token := c.next(mode)
	same := own != nil && own.Owner == c.req.Owner
	switch {
	case !force && (c.name.blocker(c.req.Owner.ID, mode) != nil || c.passed()):
		a := c.inLine(mode)
		a.Ticket = int64(c.now)
		return a
	case token >= core.TokenLimit && !same:
		return exhausted()
	}
	if force {
		c.ended = c.ended || len(c.name.Votes) > 1 || len(c.name.Votes) == 1 && own == nil
		c.name.evict(c.req.Owner.ID, c.req.Label, c.now.Add(c.req.MaxTTL))
		if same {
			return c.prolong(c.name.vote(c.req.Owner.ID))
		}
	}
	return c.keep(Vote{Mode: mode, Token: token}, mode == core.Exclusive)
}

// repair puts a lease that stands on a quorum elsewhere here too. It takes no
// token of its own: one that stepped the counter could renew a stale holder.
func (c *call) repair(own *Vote) core.Answer {
	token := c.req.Floor
	mode := c.req.Mode
	if own != nil && own.Owner == c.req.Owner {
		mode = own.Mode
	}
	if b := c.name.blocker(c.req.Owner.ID, mode); b != nil {
		return c.contended(b)
	}
	if c.name.Known && c.name.Counter > token {
		return c.refuse(core.Contended) // a later owner was here
	}
	return c.keep(Vote{Mode: mode, Token: token}, mode == core.Exclusive)
}

// convert changes the mode of the vote of an earlier attempt.
func (c *call) convert(own *Vote) core.Answer {
	switch {
	case own == nil:
		return c.refuse(core.NotHeld)
	case own.Owner == c.req.Owner:
		return c.prolong(own)
	case c.req.Mode == core.Shared:
		// No increment: a demotion keeps its token, and the readers that come
		// in now step past it, since the writer's bit stays.
		c.ended = c.ended || own.Mode == core.Exclusive
		return c.keep(Vote{Mode: core.Shared, Token: max(own.Token, c.req.Floor)}, c.name.Writer)
	}
	if b := c.name.blocker(c.req.Owner.ID, core.Exclusive); b != nil {
		return c.contended(b)
	}
	token := c.next(core.Exclusive)
	if token >= core.TokenLimit {
		return exhausted()
	}
	return c.keep(Vote{Mode: core.Exclusive, Token: token}, true)
}

// extend prolongs exactly this owner's vote and raises it to the floor. The
// check of the owner and the raise are one step, which is what makes a token
// that was written back to a quorum a fencing token.
func (c *call) extend() core.Answer {
	own := c.name.vote(c.req.Owner.ID)
	if own == nil || own.Owner != c.req.Owner {
		return c.refuse(core.NotHeld)
	}
	own.Token = max(own.Token, c.req.Floor)
	c.count(own.Token, own.Mode == core.Exclusive)
	return c.prolong(own)
}

// release is answered to every client, also of a set that the store does not
// serve any more: it can only free what is the owner's own.
func (c *call) release() core.Answer {
	r := c.req
	maxTTL := max(r.MaxTTL, 0)
	if c.rec.serves(r.Set) && maxTTL > 0 {
		c.rec.settle(maxTTL, c.now)
	} else {
		maxTTL = 0
	}
	c.settle(maxTTL)
	own := c.name.vote(r.Owner.ID)
	held := own != nil && own.Owner.Attempt <= r.Owner.Attempt
	if held {
		c.name.remove(r.Owner.ID)
		c.name.Last, c.ended = core.PreviousReleased, true
	}
	if i := c.name.place(r.Owner.ID); i >= 0 && c.name.Queue[i].Owner.Attempt <= r.Owner.Attempt {
		held = c.name.unqueue(r.Owner.ID)
		c.ended = c.ended || len(c.name.Votes) == 0 // for who stands in no line, and is not let pass one
	}
	if r.Entomb {
		c.name.entomb(r.Owner, c.now.Add(r.MaxTTL).Add(r.Limit))
	}
	if !held {
		return c.refuse(core.NotHeld)
	}
	return core.Answer{Outcome: core.Granted, Previous: c.name.Last, Readers: c.name.readers()}
}

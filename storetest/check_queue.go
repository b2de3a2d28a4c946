package storetest

import (
	"time"

	"github.com/quorumlock/quorum"
)

// inLine makes a request one of a waiter. Its turn lasts as long as votes do
// here, so that none passes on while a check runs.
func (c *call) inLine(kind quorum.WaitKind, ticket int64) mod {
	return func(r *quorum.Request) {
		r.Wait, r.Ticket, r.Keep, r.Claim = kind, ticket, min(c.ttl, time.Minute), c.ttl
	}
}

func (c *call) take(ticket int64) mod  { return c.inLine(quorum.WaitTake, ticket) }
func (c *call) queue(ticket int64) mod { return c.inLine(quorum.WaitQueue, ticket) }

func (c *call) needQueues() {
	if !c.store.Limits().Queues {
		c.skip("Limits.Queues is false")
	}
}

// stands demands a place in the line, or with ready the turn.
func (c *call) stands(o quorum.Owner, outcome quorum.Outcome, ticket int64, rank int, mods ...mod) *quorum.RefusedError {
	r := c.denied(o, mods...)
	if r.Outcome != outcome || r.Rank != rank || ticket > 0 && r.Ticket != ticket {
		c.failf("%s with ticket %d and rank %d; want %s, %d and %d", r.Outcome, r.Ticket, r.Rank, outcome, ticket, rank)
	}
	if r.Clean {
		c.failf("the refusal is clean although an entry of the owner is in the queue")
	}
	return r
}

const (
	ready  = quorum.OutcomeReady
	behind = quorum.OutcomeContended
)

var queueChecks = []check{
	{"queue/first come, first served", "a waiter could wait for ever", func(c *call) {
		c.needQueues()
		a, b, d := owner(), owner(), owner()
		c.acquire(a, c.take(1))
		c.stands(b, behind, 2, 0, c.take(2))
		c.stands(d, behind, 3, 1, c.take(3))
		c.release(a)
		c.stands(d, behind, 3, 1, c.take(3))
		c.acquire(b, c.take(2))
		c.release(b)
		c.acquire(d, c.take(3))
	}},
	{"queue/a turn is not a vote", "a waiter would hold what it never confirmed", func(c *call) {
		c.needQueues()
		a, b := owner(), owner()
		c.stands(a, ready, 1, 0, c.queue(1))
		c.notHeld(a, floor(1))
		c.stands(b, ready, 0, 0, key(c.key+" 2"), c.queue(0))
		c.acquire(a, c.take(1))
		c.extend(a)
	}},
	{"queue/ready says the counter", "the round of a waiter would take a second trip to agree on its token", func(c *call) {
		c.needQueues()
		a, b := owner(), owner()
		g := c.acquire(a)
		c.release(a)
		if r := c.stands(b, ready, 1, 0, c.queue(1)); r.Counter != g.Token {
			c.failf("ready with counter %d, want %d", r.Counter, g.Token)
		}
	}},
	{"queue/a ticket is given and kept", "waiters would stand in another order in each store, and wait for one another", func(c *call) {
		c.needQueues()
		a, b := owner(), owner()
		if g := c.acquire(a, c.take(0)); g.Ticket <= 0 { // one that does not wait may do without
			c.failf("the grant of a waiter carries ticket %d, want the store's clock", g.Ticket)
		}
		first := c.stands(b, behind, 0, 0, c.take(0)).Ticket
		if first <= 0 {
			c.failf("an entry got ticket %d, want the store's clock", first)
		}
		c.stands(b, behind, first, 0, c.queue(0))
		c.stands(at(b, 2), behind, first+7, 0, c.queue(first+7))
		if r := c.denied(owner()); r.Ticket < first {
			c.failf("a refusal carries ticket %d, want the store's clock, at least %d", r.Ticket, first)
		}
	}},
	{"queue/who does not wait passes nobody", "whoever polls would be served before those who wait", func(c *call) {
		c.needQueues()
		a, b := owner(), owner()
		c.acquire(a)
		c.stands(b, behind, 1, 0, c.take(1))
		c.release(a)
		if r := c.contended(owner()); !r.Clean {
			c.failf("the refusal of a request that does not wait is not clean")
		}
		c.acquire(b, c.take(1))
	}},
	{"queue/an older waiter displaces a younger head", "two waiters could each be first in one store, for ever", func(c *call) {
		c.needQueues()
		young, old := owner(), owner()
		c.stands(young, ready, 9, 0, c.queue(9))
		c.stands(old, ready, 5, 0, c.queue(5))
		c.stands(young, behind, 9, 1, c.take(9))
		c.acquire(old, c.take(5))
	}},
	{"queue/an earlier attempt's vote is given up", "two waiters could each have a vote and wait for the other's, for ever", func(c *call) {
		c.needQueues()
		a, b := owner(), owner()
		c.acquire(a, c.take(5))
		c.stands(b, behind, 2, 0, c.take(2))
		c.stands(at(a, 2), behind, 5, 1, c.queue(5))
		c.notHeld(a)
		c.acquire(b, c.take(2))
	}},
	{"queue/an earlier attempt is refused", "a late request would drop the vote of a later attempt", func(c *call) {
		c.needQueues()
		a := owner()
		c.stands(at(a, 2), ready, 1, 0, c.queue(1))
		c.contended(a, c.queue(1))
		c.acquire(at(a, 3), c.take(1))
		c.contended(at(a, 2), c.queue(1))
		c.extend(at(a, 3))
	}},
	{"queue/the same attempt finds its vote", "a doubled request would cost a vote", func(c *call) {
		c.needQueues()
		a := owner()
		g := c.acquire(a, c.take(1))
		c.equal("the token of queue", c.acquire(a, c.queue(1)).Token, g.Token)
		c.equal("the token of take", c.acquire(a, c.take(1)).Token, g.Token)
		c.release(a)
		c.free()
	}},
	{"queue/a turn blocks no repair", "a holder would lose a store to whoever waits for it", func(c *call) {
		c.needQueues()
		a, b := owner(), owner()
		token := c.acquire(a).Token
		c.release(a)
		c.stands(b, ready, 1, 0, c.queue(1))
		c.acquire(at(a, 2), repairing(token))
		c.stands(b, behind, 1, 0, c.queue(1))
	}},
	{"queue/release drops the entry", "who gave up would delay those behind", func(c *call) {
		c.needQueues()
		a, b := owner(), owner()
		c.acquire(a)
		c.stands(at(b, 2), behind, 1, 0, c.take(1))
		_ = c.tryRelease(b) // of attempt 1: leaves attempt 2
		c.release(a)
		c.contended(owner())
		c.release(at(b, 2))
		c.free()
	}},
	{"queue/entombed waiters do not come back", "a late request would block the line", func(c *call) {
		c.needQueues()
		a := owner()
		c.stands(a, ready, 1, 0, c.queue(1))
		c.release(a, entomb)
		c.contended(a, c.queue(1))
		c.free()
	}},
	{"queue/force passes it", "an operator could not free a name that many wait for", func(c *call) {
		c.needQueues()
		a := owner()
		c.acquire(owner())
		c.stands(a, behind, 1, 0, c.take(1))
		c.acquire(owner(), kind(quorum.KindForce))
		c.stands(a, behind, 1, 0, c.take(1))
	}},
	{"queue/a turn that nobody takes passes on", "a waiter that died would stop the line", func(c *call) {
		c.needQueues()
		a, dead, b := owner(), owner(), owner()
		c.acquire(a)
		c.stands(dead, behind, 1, 0, c.take(1), lasting(c.short), func(r *quorum.Request) { r.Claim = c.short })
		c.stands(b, behind, 2, 1, c.take(2))
		c.release(a)
		c.stands(b, behind, 2, 1, c.queue(2))
		c.lapse()
		c.acquire(b, c.take(2))
	}},
	{"queue/an entry that is not kept up is over", "a waiter that died would stop the line", func(c *call) {
		c.needQueues()
		dead := owner()
		c.stands(dead, ready, 1, 0, c.queue(1), func(r *quorum.Request) { r.Keep = c.short })
		c.contended(owner())
		c.lapse()
		c.free()
	}},
	{"queue/out of range is an error", "one bad client would stop the line", func(c *call) {
		c.needQueues()
		for _, bad := range []mod{
			func(r *quorum.Request) { r.Keep = 0 }, func(r *quorum.Request) { r.Keep = time.Hour },
			func(r *quorum.Request) { r.Claim = 0 }, func(r *quorum.Request) { r.Claim = r.TTL + 1 },
		} {
			_, err := c.tryAcquire(owner(), c.take(1), bad)
			c.fails("Acquire with a keep or claim out of range", err)
		}
		c.free()
	}},
	{"queue/a newer reader does not pass a writer", "readers that come and go would keep a writer out for ever", func(c *call) {
		c.needQueues()
		c.needShares()
		reader, writer, late := owner(), owner(), owner()
		c.acquire(reader, shared, c.take(1))
		c.stands(writer, behind, 2, 0, c.take(2))
		c.stands(late, behind, 3, 1, shared, c.take(3))
		c.contended(owner(), shared)
		c.release(reader)
		c.acquire(writer, c.take(2))
		c.release(writer)
		c.acquire(late, shared, c.take(3))
	}},
	{"queue/readers at the head go together", "readers would wait for one another", func(c *call) {
		c.needQueues()
		c.needShares()
		writer, one, two, next := owner(), owner(), owner(), owner()
		c.acquire(writer)
		c.stands(one, behind, 1, 0, shared, c.take(1))
		c.stands(two, behind, 2, 1, shared, c.take(2))
		c.stands(next, behind, 3, 2, c.take(3))
		c.release(writer)
		c.acquire(two, shared, c.take(2))
		if g := c.acquire(one, shared, c.take(1)); g.Readers != 2 {
			c.failf("%d readers hold, want 2", g.Readers)
		}
		c.release(one)
		c.stands(next, behind, 3, 0, c.queue(3))
		c.release(two)
		c.acquire(next, c.take(3))
	}},
}

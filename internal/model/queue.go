package model

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Entry is a waiter in the queue of a name. A turn is the exclusive right to be
// granted next, and no vote: a queue only ever refuses grants, so nothing that
// happens in it can harm a token or let a second holder in.
type Entry struct {
	Owner  core.Owner
	Mode   core.Mode
	Ticket int64         // the same at every store; the queue is in order of (ticket, ID)
	Until  Time          // without another request the entry is over then
	Claim  time.Duration // how long a turn of this waiter lasts
	Turn   Time          // end of its turn; 0 while it has none
}

func (e *Entry) compare(ticket int64, id core.ID) int {
	switch {
	case e.Ticket < ticket:
		return -1
	case e.Ticket > ticket:
		return 1
	}
	return slices.Compare(e.Owner.ID[:], id[:])
}

// place returns where id stands in the queue, or -1.
func (n *Name) place(id core.ID) int {
	return slices.IndexFunc(n.Queue, func(e Entry) bool { return e.Owner.ID == id })
}

// enqueue keeps e in place of any entry of its ID, by its ticket. An older
// waiter so displaces the head, also one whose turn it is: nothing was promised.
func (n *Name) enqueue(e Entry) {
	if i := n.place(e.Owner.ID); i >= 0 {
		if n.Queue[i].Ticket == e.Ticket {
			e.Turn = n.Queue[i].Turn
			n.Queue[i] = e
			return
		}
		n.Queue = slices.Delete(n.Queue, i, i+1)
	}
	i, _ := slices.BinarySearchFunc(n.Queue, e, func(a, b Entry) int { return a.compare(b.Ticket, b.Owner.ID) })
	n.Queue = slices.Insert(n.Queue, i, e)
}

// unqueue drops the entry of id, and reports whether there was one.
func (n *Name) unqueue(id core.ID) bool {
	i := n.place(id)
	if i >= 0 {
		n.Queue = slices.Delete(n.Queue, i, i+1)
	}
	return i >= 0
}

// front is how many entries at the head of the queue may be granted now: one
// writer, or the readers before the first writer.
func (n *Name) front() int {
	switch {
	case len(n.Queue) == 0 || len(n.Votes) > 0 && n.readers() == 0:
		return 0
	case n.Queue[0].Mode == core.Shared:
		if i := slices.IndexFunc(n.Queue, func(e Entry) bool { return e.Mode == core.Exclusive }); i >= 0 {
			return i
		}
		return len(n.Queue)
	case len(n.Votes) > 0:
		return 0
	}
	return 1
}

// turns gives their turns to those at the front of the queue, takes them from
// whoever is there no more, and drops who let a turn pass. Whoever asks just
// now is alive: its turn begins anew, and it hears of it by the answer.
func (c *call) turns() {
	n := c.name
	told := false
	front := 0
	if c.rec.Standing == Voting {
		front = n.front()
	}
	for i := 0; i < front; {
		e := &n.Queue[i]
		switch {
		case c.asks(e):
			e.Turn = c.now.Add(e.Claim)
		case e.Turn == 0:
			e.Turn, told = c.now.Add(e.Claim), true
			c.tell(core.Wake{Kind: core.WakeTurn, Owner: e.Owner, Counter: c.counter()})
		case e.Turn <= c.now:
			n.Queue = slices.Delete(n.Queue, i, i+1)
			front = n.front()
			continue
		}
		i++
	}
	for i := front; i < len(n.Queue); i++ {
		n.Queue[i].Turn = 0
	}
	if told && front < len(n.Queue) && !c.asks(&n.Queue[front]) {
		// Should the turn not be taken, the next in line finds out by itself.
		after := n.Queue[front-1].Claim
		c.tell(core.Wake{Kind: core.WakeNext, Owner: n.Queue[front].Owner, After: after})
	}
}

// asks reports whether the request under way is a waiter's own.
func (c *call) asks(e *Entry) bool {
	return c.req.Verb == core.Acquire && c.req.Wait.Queued() && e.Owner == c.req.Owner
}

// counter is the least that the next token is above.
func (c *call) counter() int64 {
	if !c.name.Known {
		return c.rec.start()
	}
	return c.name.Counter
}

// wait carries out an Acquire that stands in line: take, which is granted when
// its turn has come, and queue, which never is.
func (c *call) wait(own *Vote) core.Answer {
	n, r := c.name, c.req
	ticket := r.Ticket
	if i := n.place(r.Owner.ID); ticket == 0 && i >= 0 {
		ticket = n.Queue[i].Ticket
	}
	if ticket == 0 {
		ticket = int64(c.now)
	}
	token := c.next(r.Mode)
	if token >= core.TokenLimit {
		return exhausted()
	}
	if own != nil { // of an earlier attempt: who stands in line holds nothing back
		n.remove(r.Owner.ID)
		n.Last, c.ended = core.PreviousReleased, true
	}
	n.enqueue(Entry{Owner: r.Owner, Mode: r.Mode, Ticket: ticket, Until: c.now.Add(r.Keep), Claim: r.Claim})
	c.turns()
	rank := n.place(r.Owner.ID)
	mine := n.Queue[rank].Turn > 0
	if mine && r.Wait == core.WaitTake {
		a := c.keep(Vote{Mode: r.Mode, Token: token}, r.Mode == core.Exclusive)
		a.Ticket = ticket
		return a
	}
	a := c.inLine(r.Mode)
	a.Ticket, a.Rank = ticket, rank
	if mine {
		a.Outcome, a.Token, a.Left = core.Ready, c.counter(), r.Claim
	}
	return a
}

// inLine refuses because of a vote, or of those who wait before.
func (c *call) inLine(mode core.Mode) core.Answer {
	if b := c.name.blocker(c.req.Owner.ID, mode); b != nil {
		return c.contended(b)
	}
	a := c.refuse(core.Contended)
	if q := c.name.Queue; len(q) > 0 && q[0].Turn > 0 {
		a.Left = max(q[0].Turn.Sub(c.now), 0)
	}
	return a
}

// passed reports whether somebody else stands in line, whom a request that
// does not wait must not pass.
func (c *call) passed() bool {
	return slices.ContainsFunc(c.name.Queue, func(e Entry) bool { return e.Owner.ID != c.req.Owner.ID })
}

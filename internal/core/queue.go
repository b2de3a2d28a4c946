package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// line is what a Quorum says of itself when it stands in the stores' queues. A
// turn there is no vote: votes are taken as ever, and a queue only refuses.
type line struct {
	ticket int64 // the same at every store: the first that a store answered
	keep   time.Duration
	claim  time.Duration
}

// waitKind is how a new request of store i's waits. Before a ticket is known
// only the first store asked may give one: else the same waiter would rank
// differently in different stores, and two could wait for each other.
func (q *Quorum) waitKind(s *slot) WaitKind {
	switch {
	case !q.cfg.Queues:
		return q.cfg.Request.Wait
	case s.stand:
		return WaitQueue
	case q.line.ticket > 0, q.attempt == 1 && q.asked == 1 && q.cfg.Request.Order != AllAtOnce, q.cfg.Bugs.has(BugOwnTickets):
		return WaitTake
	}
	return WaitNone
}

// inLine completes a new request.
func (q *Quorum) inLine(s *slot, r *Request) {
	if r.Wait = q.waitKind(s); !r.Wait.Queued() {
		return
	}
	r.Ticket, r.Keep, r.Claim = q.line.ticket, q.line.keep, q.line.claim
	if q.cfg.Bugs.has(BugOwnTickets) {
		r.Ticket = 0
	}
}

// placed keeps what an answer says of a place in a queue.
func (q *Quorum) placed(s *slot, c call, a Answer) {
	if q.line.ticket == 0 {
		q.line.ticket = a.Ticket
	}
	there := a.Outcome == Contended || a.Outcome == Ready
	s.stands = c.wait.Queued() && there && a.Ticket > 0 && (a.Ticket == q.line.ticket || q.cfg.Bugs.has(BugOwnTickets))
}

// stood takes the answer to a request that only stands in line. It may find a
// vote of the attempt under way, which then counts as ever.
func (q *Quorum) stood(now clock.Instant, i int, c call, a Answer) {
	s := &q.slots[i]
	if a.Outcome == Granted && (q.phase == Asking || q.phase == Held) {
		q.acquired(now, i, c, a)
		return
	}
	q.note(i, a)
	s.owe = s.owe && s.mayHold()
	s.answered = s.answered || !s.mayHold()
	if q.phase == Failed {
		s.outcome = a.Outcome
		q.counter = max(q.counter, a.Token)
	}
	if a.Outcome == Mismatch && (q.phase == Failed || q.phase == Asking) {
		q.fail(now, ByMismatch)
	}
}

// Yield goes on in line after an attempt that failed: in an attempt of its own,
// so that whatever the last one may have got is given up, it stands in line
// where it does not yet.
func (q *Quorum) Yield(now clock.Instant) {
	if !q.cfg.Bugs.has(BugYieldsInPlace) {
		q.attempt++
	}
	for i := range q.slots {
		s := &q.slots[i]
		if q.cfg.Bugs.has(BugNoYield) && s.vote == granted {
			continue
		}
		if s.vote == granted || s.vote == pending || s.vote == unclear {
			s.stands = false
		}
		if !s.stands {
			s.want = wantStand
			q.pump(now, i)
		}
	}
}

// Stand asks store i how the line stands, and keeps the place in it.
func (q *Quorum) Stand(now clock.Instant, i int) {
	s := &q.slots[i]
	if keeps := q.cfg.Bugs.has(BugNoYield) && s.vote == granted; s.want == wantNothing && !keeps {
		s.want = wantStand
		q.pump(now, i)
	}
}

// Take asks all stores of ready, where the turn is ours, for their votes, in
// the attempt that stands in line. Their tokens are to be above counter, the
// highest that they told, so that they agree at once.
func (q *Quorum) Take(now clock.Instant, ready Set, counter int64) {
	q.phase, q.failure, q.turn = Asking, NoFailure, true
	q.asked, q.start, q.high = 0, now, counter+1
	for i := range q.slots {
		q.slots[i].reset()
	}
	for i := range q.slots {
		if ready.Has(i) {
			q.Join(now, i)
		}
	}
}

// Join asks one more store in a round that is under way, and reports false
// where it cannot.
func (q *Quorum) Join(now clock.Instant, i int) bool {
	joins := q.phase == Asking && q.turn && q.slots[i].vote == notAsked
	if joins {
		q.put(now, i)
	}
	return joins
}

// Mend answers a turn that comes once the lease is held: by a repair, which
// takes the place in line away with it, or else by leaving it.
func (q *Quorum) Mend(now clock.Instant, i int) {
	s := &q.slots[i]
	switch {
	case q.phase != Held || s.vote == granted || s.busy || s.want != wantNothing:
		return
	case s.shut:
		s.due(now, q.cfg.ReleaseLimit)
	default:
		s.want = wantRepair
	}
	q.pump(now, i)
}

// waits reports whether an attempt failed in such a way that the wait in line
// goes on.
func (q *Quorum) waits() bool {
	return q.cfg.Queues && (q.failure == ByHeld || q.failure == ByNoQuorum)
}

// turnedAway reports whether the first store that answered the first attempt
// had it wait: the order is the same for all, so what the others say is vain.
func (q *Quorum) turnedAway(votes Set) bool {
	return q.cfg.Queues && !q.turn && q.attempt == 1 && votes == 0 && q.cfg.Request.Order != AllAtOnce &&
		q.which(func(s *slot) bool { return s.vote == refused && s.outcome == Contended }) != 0
}

// outlook is why the wait in line lasts, once every store was heard: was, as long
// as nothing else is known.
func (q *Quorum) outlook(was Failure) Failure {
	busy := q.which(func(s *slot) bool { return s.busy || s.want != wantNothing })
	contended := q.contended()
	clear := q.which(func(s *slot) bool { return s.outcome == Ready || s.outcome == NotAsked })
	switch {
	case q.phase != Failed || busy != 0:
		return was
	case !q.cfg.Rule.Met(contended | clear):
		return ByNoQuorum
	case contended != 0:
		return ByHeld
	}
	return was
}

// flight returns the call in flight to a store that an answer is to.
func (q *Quorum) flight(store int, seq uint32) (call, bool) {
	s := &q.slots[store]
	return s.call, s.busy && s.call.seq == seq
}

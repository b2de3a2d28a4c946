package core

import (
	"math"
	"time"

	"github.com/quorumlock/quorum/clock"
)

// Extend starts a round: every vote is asked, at once, to last ttl from now.
// It must be called only while held, with validity left and no round active.
func (q *Quorum) Extend(now clock.Instant, ttl time.Duration) {
	q.round = round{n: q.round.n + 1, active: true, start: now, ttl: ttl}
	for i := range q.slots {
		s := &q.slots[i]
		if s.vote != granted {
			continue
		}
		s.want = wantExtend
		q.pump(now, i)
	}
	q.settleRound(now)
}

// ExtendAs starts the round of an outer owner, at every member: a composite
// passes it through, and counts the members that answer its floor.
func (q *Quorum) ExtendAs(now clock.Instant, attempt uint32, floor int64, ttl time.Duration) {
	q.attempt, q.high, q.phase, q.start = attempt, floor, Held, now
	q.until = now.Add(ttl)
	for i := range q.slots {
		q.slots[i].vote, q.slots[i].token, q.slots[i].asked, q.slots[i].sent = granted, floor, true, attempt
	}
	q.Extend(now, ttl)
}

// extended takes the answer to an Extend, of the confirm phase or of a round.
func (q *Quorum) extended(now clock.Instant, i int, c call, a Answer) {
	s := &q.slots[i]
	if c.attempt != q.attempt || s.vote != granted || q.phase != Asking && q.phase != Held {
		return // I4
	}
	s.outcome = a.Outcome
	if c.round == q.round.n && a.Outcome == Granted {
		q.round.readers = max(q.round.readers, uint16(min(max(a.Readers, 0), math.MaxUint16)))
	}
	unowned := a.Outcome == NotHeld && q.cfg.Bugs.has(BugWriteBackUnowned)
	switch {
	case a.Outcome == Granted && (a.Token == c.floor || q.cfg.Bugs.has(BugAnswerNotCompared)), unowned:
		s.token = c.floor
		s.raises = 0
		s.extended = c.round
	case a.Outcome == Granted:
		// Another number than the floor: the lease ran out there and somebody came
		// and went, or a late request of ours got in again. Ownership was
		// interrupted, so the vote is lost; what is there now is not ours to count.
		s.vote, s.shut = refused, true
		s.outcome = NotHeld
	case a.Outcome == Mismatch && q.phase == Asking:
		s.vote = refused
		q.fail(now, ByMismatch)
	case a.Outcome == Unknown, a.Outcome == Undelivered:
		if s.raises++; q.phase == Asking && s.raises >= 2 {
			s.vote = unclear
		}
	default:
		s.vote = refused
		// A counter past the token says that another owner was let in since.
		s.rival, s.forced = a.Token > c.floor, a.Forced
	}
}

// settleRound looks whether the round under way is decided.
func (q *Quorum) settleRound(now clock.Instant) {
	if !q.round.active {
		return
	}
	n := q.round.n
	var done, votes Set
	waiting := false
	for i := range q.slots {
		s := &q.slots[i]
		if s.vote != granted {
			continue
		}
		votes = votes.With(i)
		asked := s.want == wantExtend || s.want == wantDemote || s.busy && s.call.verb != Release && s.call.round == n
		switch {
		case s.extended == n:
			done = done.With(i)
		case asked && !s.late:
			waiting = true
		}
	}
	if !q.round.won && q.cfg.Rule.Met(done) {
		q.round.won = true
		q.ttl = q.round.ttl
		q.until = max(q.until, q.confirmed())
	}
	if q.round.won {
		if q.until == q.confirmed() {
			q.dropStale(now)
		}
		q.repair(now) // also what only now turns out to be missing
	}
	if !q.round.won && !q.cfg.Rule.Met(votes) {
		// Not even the votes that have not answered could make a quorum (I5).
		q.round.active = false
		q.lose()
		return
	}
	if !waiting {
		q.round.active = false
	}
}

// confirmed is how long the holder may believe by the present round.
func (q *Quorum) confirmed() clock.Instant {
	return q.round.start.Add(q.round.ttl - q.drift(q.round.ttl))
}

// repair puts the lease back on stores that have no vote. It never counts
// towards the round that started it, and is sent only while a quorum of
// existing votes confirms the lease.
func (q *Quorum) repair(now clock.Instant) {
	for i := range q.slots {
		s := &q.slots[i]
		if s.vote == granted || s.shut || s.want != wantNothing || s.busy || s.repaired == q.round.n || q.idle(i) {
			continue
		}
		if q.cfg.Member && s.outcome != NotHeld {
			continue
		}
		s.want, s.repaired = wantRepair, q.round.n
		q.pump(now, i)
	}
}

// Lose ends the lease without a word to the stores: its holder may still be
// stopping, and only its own Release may free the name.
func (q *Quorum) Lose() {
	if q.phase == Held || q.Promoting() {
		q.lose()
	}
}

func (q *Quorum) lose() {
	q.phase, q.round.active, q.change = Lost, false, nil
	for i := range q.slots {
		q.slots[i].want = wantNothing
	}
}

// Release gives the lease back, at every store that may remember it.
func (q *Quorum) Release(now clock.Instant) {
	q.phase, q.round.active, q.change = Releasing, false, nil
	for i := range q.slots {
		q.slots[i].want = wantNothing
		q.slots[i].answered, q.slots[i].failed = false, false
	}
	q.releaseAll(now)
}

// ReleaseAs releases an outer owner at every member.
func (q *Quorum) ReleaseAs(now clock.Instant, attempt uint32) {
	q.attempt = attempt
	for i := range q.slots {
		q.slots[i].asked, q.slots[i].sent = true, attempt
	}
	q.Release(now)
}

func (q *Quorum) releaseAll(now clock.Instant) {
	for i := range q.slots {
		if q.slots[i].mayHold() {
			q.slots[i].due(now, q.cfg.ReleaseLimit)
		}
	}
	for i := range q.slots {
		q.pump(now, i)
	}
}

// released takes the answer to a Release.
func (q *Quorum) released(now clock.Instant, i int, a Answer) {
	s := &q.slots[i]
	if q.phase == Releasing { // a roll-back does not change what the attempt came to
		s.outcome, s.released = a.Outcome, true
	}
	switch a.Outcome {
	case Granted, NotHeld:
		// Nothing was sent since, because a store has one call at a time; a
		// release that asked to entomb keeps also what is late from coming to life.
		s.asked, s.clean, s.linger = false, true, false
		s.owe, s.answered = false, true
	default:
		s.answered = s.answered || a.Enough
		if s.owe {
			s.retry(now)
		}
	}
}

// Releases reports how giving back stands: which stores answered (a store with
// nothing of ours counts), whether every store has answered or failed once,
// and whether nothing more will be sent or awaited. Where those that answered
// are enough, one that is sick or slow is not waited for.
func (q *Quorum) Releases() (answered Set, heard, quiet bool) {
	var open, late Set
	quiet = true
	for i := range q.slots {
		s := &q.slots[i]
		if !s.asked && !s.owe || s.answered || s.asked && !s.mayHold() {
			answered = answered.With(i)
		} else if !s.failed {
			open = open.With(i)
			if s.slow || q.sick.Has(i) {
				late = late.With(i)
			}
		}
		if s.owe || s.busy && !s.late || s.want != wantNothing {
			quiet = false
		}
	}
	heard = open == 0 || open == late && q.cfg.Rule.Met(answered)
	return answered, heard, quiet
}

// Leftovers returns the stores that could not be released before the limit.
func (q *Quorum) Leftovers() Set {
	return q.which(func(s *slot) bool { return s.mayHold() && !s.owe && s.failed })
}

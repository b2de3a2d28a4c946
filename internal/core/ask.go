package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// ask carries the first two phases on: ask until the grants satisfy the rule,
// then confirm their token by write-back.
func (q *Quorum) ask(now clock.Instant) {
	var votes, confirmed, open, twins Set
	for i := range q.slots {
		s := &q.slots[i]
		if s.vote == granted {
			if !s.stuck() {
				votes = votes.With(i)
			}
			// The maximum runs over every grant of the attempt, also those lost
			// since: too high a token is harmless, a falling one is not.
			q.high = max(q.high, s.token)
		}
		if s.vote == notAsked && !q.turn || s.vote == pending && !s.overdue {
			open = open.With(i)
		}
		if s.outcome == Twin {
			twins = twins.With(i)
		}
	}
	for i := range q.slots {
		if s := &q.slots[i]; s.vote == granted && s.token == q.high {
			confirmed = confirmed.With(i)
		}
	}
	if q.cfg.Bugs.has(BugNoWriteBack) {
		confirmed = votes
	}
	rule := q.cfg.Rule
	switch {
	case q.turnedAway(votes):
		q.fail(now, q.whyNot())
	case rule.Met(confirmed):
		q.win(now)
	case now >= q.deadline():
		if rule.Met(votes | open) {
			q.fail(now, ByExpired)
		} else {
			q.fail(now, q.whyNot())
		}
	case rule.Met(votes):
		q.confirm(now, votes&^confirmed)
	case open == 0 || !rule.Met(votes|open|twins):
		// A twin has no vote. But of which store it is one may be old news, which
		// that store's answer brings up to date: so a twin does not end the asking.
		if why := q.whyNot(); why == ByHeld || !q.mayBeHeld() {
			q.fail(now, why)
		}
	case !q.turn:
		q.askMore(now, votes)
	}
}

// confirm raises the votes that lag to the token. It is the write-back that
// makes the maximum a fencing token: the plain maximum is not one, because the
// next quorum may not share the store that knew it.
func (q *Quorum) confirm(now clock.Instant, lagging Set) {
	for i := range q.slots {
		s := &q.slots[i]
		if !lagging.Has(i) || s.busy || s.want != wantNothing {
			continue
		}
		s.want = wantExtend
		q.pump(now, i)
	}
}

// askMore asks as many more stores as the order allows. A store that takes
// longer than it did lately does not hold up the order.
func (q *Quorum) askMore(now clock.Instant, votes Set) {
	waiting := q.which(func(s *slot) bool { return s.vote == pending && !s.overdue && !s.slow })
	for i := q.candidate(); i >= 0 && waiting.Len() < q.width(votes); i = q.candidate() {
		if q.sick.Has(i) && q.cfg.Rule.Met(votes|waiting) {
			return // those that are well may do
		}
		q.put(now, i)
		waiting = waiting.With(i)
	}
}

// put asks store i for its vote.
func (q *Quorum) put(now clock.Instant, i int) {
	s := &q.slots[i]
	q.asked++
	s.vote, s.want = pending, wantAcquire
	s.overdue, s.patience = false, min(now.Add(q.hope(i)), q.deadline())
	s.slow, s.hedge = false, min(now.Add(q.patience(i)), s.patience)
	q.pump(now, i)
}

// width is how many answers may be awaited at once.
func (q *Quorum) width(votes Set) int {
	switch q.cfg.Request.Order {
	case InOrder:
		if q.kind == New {
			return 1
		} // the other kinds concern votes that exist: every store is to have its part
	case FirstThenRest:
		// One after another until a store gives its vote: it arbitrates, also where
		// those before it do not answer. What follows is asked at once by whom it
		// chose, unless another store refused: whoever has that vote asks all by
		// now too, and to do the same would split what is left of the vote.
		if q.kind == New && (votes == 0 || q.contended() != 0) {
			return 1
		}
	}
	return len(q.slots)
}

// note keeps what the end of an Acquire of any kind says about what may be left.
func (q *Quorum) note(i int, a Answer) {
	if q.cfg.Doubles.Has(i) {
		a.Clean = false // the same request may arrive again, and be granted
	}
	q.slots[i].note(a, q.cfg.Bugs)
}

// acquired takes the answer to an Acquire or a Repair.
func (q *Quorum) acquired(now clock.Instant, i int, c call, a Answer) {
	s := &q.slots[i]
	q.note(i, a)
	current := c.attempt == q.attempt && (q.phase == Asking || q.phase == Held)
	if !current && !(q.cfg.Bugs.has(BugVoidCounts) && q.phase == Asking) {
		// Void (I4). What it left is released, unless it says that it left nothing.
		s.owe = s.owe && s.mayHold()
		s.answered = s.answered || !s.mayHold()
		if a.Outcome == Granted && q.stray(i) {
			want := s.want // it follows
			s.due(now, q.cfg.ReleaseLimit)
			s.want = want
		}
		return
	}
	if s.want == wantAcquire {
		return // an answer to an older attempt, while the new one still waits to leave
	}
	s.outcome = a.Outcome
	switch {
	case a.Outcome == Granted && q.phase == Asking:
		s.vote, s.token, s.previous = granted, a.Token, a.Previous
		if q.exact(c) && a.Token != c.floor {
			s.vote = refused
		}
	case a.Outcome == Granted && a.Token <= q.high:
		// A late grant joins the lease; the next extension raises it.
		s.vote, s.token = granted, a.Token
	case a.Outcome == Granted:
		// A late grant above the token would order us after a rival that got
		// less: give it back. The store's counter is past the token, so it
		// cannot be repaired either.
		s.vote, s.shut = refused, true
		if !q.cfg.Bugs.has(BugLateGrantKept) && !q.cfg.Member {
			s.due(now, q.cfg.ReleaseLimit)
		}
	case a.Outcome == Mismatch && q.phase == Asking:
		s.vote = refused
		q.fail(now, ByMismatch)
	case a.Outcome == Unknown:
		s.vote = unclear
	default:
		s.vote, s.forced = refused, a.Forced
		q.counter = max(q.counter, a.Token)
		if q.phase == Held && c.kind == New && s.stands && !q.cfg.Member {
			s.want = wantRepair // it passes the line, and takes our place there away
		}
	}
}

// stray reports whether a vote that an older attempt left in store i is to be
// given back although no roll-back owes that: the lease changed its mode since.
// Not where the store is one of the lease's votes, or the holder may still
// believe by it.
func (q *Quorum) stray(i int) bool {
	s := &q.slots[i]
	ours := s.vote == granted || s.stale || s.want == wantDemote || q.Promoting() && q.change.votes.Has(i)
	return (q.phase == Held || q.Promoting()) && !q.cfg.Member && !ours
}

// exact reports whether only one token will do: a repaired or demoted vote
// carries the token of its lease, or it is not a vote of it.
func (q *Quorum) exact(c call) bool {
	return c.kind == Repair || c.kind == Convert && q.mode == Shared
}

// win holds the lease from now on, if any of it is left.
func (q *Quorum) win(now clock.Instant) {
	from := q.start
	if q.cfg.Bugs.has(BugValidityFromReply) {
		from = now
	}
	q.until = from.Add(q.ttl - q.drift(q.ttl))
	if now >= q.until {
		q.fail(now, ByExpired)
		return
	}
	if !q.Promoting() {
		q.previous = q.fate()
	}
	q.phase, q.change = Held, nil
	for i := range q.slots {
		s := &q.slots[i]
		if q.cfg.Member {
			s.want = wantNothing
			continue
		}
		// Stores this attempt did not reach get a Repair, which takes no token of
		// its own. An Acquire that still waits to leave becomes one.
		missed := s.sent < q.attempt || q.turn && s.vote == notAsked
		if missed && (!q.idle(i) || s.want == wantAcquire) {
			s.vote, s.want = notAsked, wantRepair
			q.pump(now, i)
		}
	}
}

// fate is how the holder before ended, by the votes of the attempt. One store
// that saw it expire is enough: a release reaches a store or not, and nobody
// else ends a vote so.
func (q *Quorum) fate() Previous {
	worst := PreviousUnknown
	for i := range q.slots {
		if s := &q.slots[i]; s.vote == granted {
			worst = max(worst, s.previous)
		}
	}
	return worst
}

// fail ends the attempt and rolls it back: every store that may remember us is
// told, whatever the caller's context says (I6).
func (q *Quorum) fail(now clock.Instant, why Failure) {
	if q.Promoting() {
		q.undo(now, why)
		return
	}
	q.phase, q.failure = Failed, why
	for i := range q.slots {
		q.slots[i].want = wantNothing
	}
	if q.cfg.Member || why == ByAbandoned && q.cfg.Bugs.has(BugCallersContext) {
		return
	}
	if q.waits() {
		return // the wait goes on in line, by Yield, or ends, by Abandon
	}
	q.releaseAll(now)
}

// Abandon gives the attempt under way up, or the places in line.
func (q *Quorum) Abandon(now clock.Instant) {
	if q.phase == Asking || q.phase == Failed && q.waits() {
		q.fail(now, ByAbandoned)
	}
}

// whyNot tells contention from outage: ErrHeld when a store was contended and
// the contended ones could have made a quorum with those that granted or were
// not asked.
func (q *Quorum) whyNot() Failure {
	if q.contended() != 0 && q.cfg.Rule.Met(q.friendly()) {
		return ByHeld
	}
	return ByNoQuorum
}

// whyEnded is whyNot where the caller ends an attempt whose answers are still
// due: they count like those of stores that were not asked.
func (q *Quorum) whyEnded() Failure {
	if q.contended() != 0 && q.mayBeHeld() {
		return ByHeld
	}
	return q.whyNot()
}

func (q *Quorum) contended() Set {
	return q.which(func(s *slot) bool { return s.outcome == Contended })
}

func (q *Quorum) friendly() Set {
	return q.which(func(s *slot) bool {
		return s.vote == granted || s.vote == notAsked || s.outcome == Contended || s.outcome == Ready
	})
}

// mayBeHeld reports whether answers that are due shortly could tell that what
// looks like an outage is contention. One that never answered this client may have
// to be connected to first, and is not slow.
func (q *Quorum) mayBeHeld() bool {
	due := q.which(func(s *slot) bool { return s.vote == pending && !(s.slow && s.known) && !s.overdue })
	return due != 0 && q.cfg.Rule.Met(q.friendly()|due)
}

func (q *Quorum) drift(ttl time.Duration) time.Duration {
	if q.cfg.Bugs.has(BugNoDrift) || q.cfg.Member {
		return 0 // a composite's caller takes drift off, once
	}
	const million = 1_000_000
	whole, rest := int64(ttl)/million, int64(ttl)%million // the product of all would overflow
	return time.Duration(whole*q.cfg.DriftPPM+(rest*q.cfg.DriftPPM+million-1)/million) + q.cfg.DriftFixed
}

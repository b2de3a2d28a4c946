package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// vote is what a store's answers amount to in the present attempt.
type vote uint8

const (
	notAsked vote = iota
	pending       // asked, and its answer would still count
	granted       // a vote with slot.token
	refused       // a clear answer that there is no vote
	unclear       // no clear answer: there may be a vote that cannot be counted
)

// want is what waits for the call in flight to end.
type want uint8

const (
	wantNothing want = iota
	wantAcquire
	wantExtend
	wantDemote
	wantRepair
	wantStand
)

// call is the request in flight.
type call struct {
	sent    clock.Instant
	limit   clock.Instant
	floor   int64
	seq     uint32
	attempt uint32
	round   uint32
	verb    Verb
	kind    Kind
	wait    WaitKind
	demotes bool // a convert to shared, in a round
}

// trip is what a Quorum knows of a store only while something is under way or
// due there.
type trip struct {
	call     call
	usual    time.Duration // how long its answer is awaited before the next store is asked; 0 is until the call's limit
	patience clock.Instant // when a pending vote is overdue
	hedge    clock.Instant // when it is slow
	retryAt  clock.Instant // of a release that is due
	oweUntil clock.Instant
	extended uint32 // round in which it was confirmed last: of use in that round alone
	repaired uint32 // round in which it was repaired last
	tries    uint8
	known    bool // it has answered this client
	failing  bool // its last call got no clear answer
	late     bool // the call in flight has outlived its limit, and nobody waits for it
	overdue  bool // a pending vote is not waited for any more; it still counts when it comes
	stand    bool // the request about to leave only stands in line
	before   bool // something may have been there when the call in flight left
}

// slot is what a Quorum knows of one store. The larger fields come first: a held
// lease has a slot a store, and each should be small.
type slot struct {
	*trip       // nil outside of events where nothing is under way or due: see Room
	token int64 // of a granted vote
	took  time.Duration

	sent  uint32 // highest attempt sent
	busy  bool   // a call is in flight
	stale bool   // a demotion lost the vote, and the holder may still believe by it

	want   want
	stands bool // an entry with our ticket is in the queue, as far as is known

	vote     vote
	slow     bool     // it takes longer than the store did lately: the next need not wait for it
	mode     Mode     // of a granted vote; a store that cannot share gives an exclusive one
	previous Previous // how the holder before ended, says the store
	raises   uint8    // write-backs of the confirm phase that ended unclear
	outcome  Outcome  // last, for people; a roll-back's does not count
	released bool     // it is that of a release

	rival  bool // a vote of ours was refused because of another holder
	forced bool // by force

	asked  bool // something of ours may be there
	clean  bool // its last word was that nothing is
	linger bool // an earlier request may still arrive there
	shut   bool // its counter is past the lease's token: it cannot be repaired

	owe      bool // a release is due
	answered bool // the release due last was answered
	failed   bool // it failed at least once
}

// reset makes the slot ready for a new attempt. Calls in flight, releases due
// and what may linger stay.
func (s *slot) reset() {
	s.want, s.vote, s.token, s.raises = wantNothing, notAsked, 0, 0
	s.outcome, s.released, s.took, s.shut = NotAsked, false, 0, false
	s.rival, s.forced = false, false
	s.overdue, s.patience = false, Never
	s.slow, s.hedge = false, Never
}

// ask says that an Acquire of any kind leaves, which may put something there.
func (s *slot) ask() {
	s.before = s.asked && !s.clean
	s.asked, s.clean = true, false
}

// mayHold reports whether a release must go there.
func (s *slot) mayHold() bool { return s.asked && (!s.clean || s.linger) }

// stuck reports whether a write-back is late, so that the vote cannot be
// counted on although it was granted.
func (s *slot) stuck() bool { return s.busy && s.late && s.call.verb == Extend }

// note keeps what the end of an Acquire says about what may be left in the
// store.
func (s *slot) note(a Answer, bugs Bugs) {
	switch a.Outcome {
	case Granted:
		s.clean = false
	case Unknown:
		s.clean, s.linger = false, true
		if bugs.has(BugUnknownIsNo) {
			s.asked, s.linger = false, false
		}
	case Undelivered:
		s.clean = !s.before
	default:
		s.clean = a.Clean
	}
}

// next returns when the slot needs a Wake. How long a vote is pending matters
// only while an attempt asks: an answer that comes later needs nobody to wait.
func (s *slot) next(asking bool) clock.Instant {
	at, awaited := Never, asking && s.vote == pending
	if awaited && !s.overdue {
		at = s.patience
	}
	if !s.slow && (awaited || s.busy && s.owe) {
		at = min(at, s.hedge)
	}
	if s.busy && !s.late {
		at = min(at, s.call.limit)
	}
	if s.owe {
		at = min(at, s.oweUntil)
		if !s.busy {
			at = min(at, s.retryAt)
		}
	}
	return at
}

// tick lets time pass for the slot.
func (s *slot) tick(now clock.Instant) {
	if s.vote == pending && now >= s.patience {
		s.overdue = true
	}
	if now >= s.hedge && (s.vote == pending || s.busy && s.owe) {
		s.slow = true
	}
	if s.busy && now >= s.call.limit {
		s.late = true
		s.failed = s.failed || s.owe // the release is late, or cannot even leave
	}
	if s.owe && now >= s.oweUntil {
		s.owe, s.failed = false, true // the store frees itself at the TTL
	}
}

// due makes a release due, until the limit.
func (s *slot) due(now clock.Instant, limit time.Duration) {
	s.want = wantNothing
	s.owe, s.answered, s.failed = true, false, s.busy && s.late
	s.tries, s.retryAt, s.oweUntil = 0, now, now.Add(limit)
}

// Releases are retried from 10 ms to 1 s apart. The pause needs no jitter:
// each goes to one store, for one owner.
const (
	retryMin = 10 * time.Millisecond
	retryMax = time.Second
)

// retry puts a failed release off.
func (s *slot) retry(now clock.Instant) {
	s.failed = true
	pause := min(retryMin<<min(s.tries, 10), retryMax)
	s.tries++
	s.retryAt = now.Add(pause)
}

// VoteView is a store's part in the last attempt or round, for people.
type VoteView struct {
	Outcome  Outcome
	Pending  bool // asked, and no answer yet
	Late     bool // pending, and not waited for any more
	Released bool // Outcome is that of a release
	Token    int64
	Mode     Mode // of a vote
	Took     time.Duration
}

// View returns store i's part.
func (q *Quorum) View(i int) VoteView {
	s := &q.slots[i]
	v := VoteView{Outcome: s.outcome, Released: s.released, Took: s.took}
	if s.vote == granted {
		v.Token, v.Mode = s.token, s.mode
	}
	unreleased := q.phase == Releasing && s.mayHold() && !s.released
	if s.vote == pending || s.busy && s.call.verb == Extend || unreleased {
		v.Outcome, v.Pending = Unknown, true
		v.Late = s.vote == pending && s.overdue || s.busy && s.late
	}
	return v
}

// Votes returns the stores whose vote the lease counts on.
func (q *Quorum) Votes() Set { return q.which(func(s *slot) bool { return s.vote == granted }) }

// which returns the stores for which f holds.
func (q *Quorum) which(f func(*slot) bool) Set {
	var set Set
	for i := range q.slots {
		if f(&q.slots[i]) {
			set = set.With(i)
		}
	}
	return set
}

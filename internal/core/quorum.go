package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// Never is later than every instant.
const Never = clock.Instant(1<<63 - 1)

// Config is what a Quorum is told once.
type Config struct {
	Rule *Rule
	// Ask is the order in which stores are asked: all clients use the same for
	// a key, so that the first store arbitrates and a vote does not split.
	Ask Ranking
	// Request is the pattern of every request: key, label, mode, kind, order,
	// set, MaxTTL and the owner's ID. Its TTL is what is asked for.
	Request      Request
	Within       time.Duration // for an attempt as a whole: the TTL, or what a composite's caller allows
	CallLimit    time.Duration // for one call, from when it is written
	ReleaseLimit time.Duration // for releases, retries included
	DriftPPM     int64         // by how much clocks may differ in rate, in millionths
	DriftFixed   time.Duration
	Doubles      Set  // stores whose client may send a request twice
	Member       bool // a composite's inner round: it never rolls back or repairs by itself
	Queues       bool // every store keeps a queue, and whoever asks is to wait in it
	Bugs         Bugs
}

// Machine is what a driver drives: a [Quorum], [Lease] or [Refill].
type Machine interface {
	// Calls returns what to send now, and forgets it.
	Calls() []Call
	// AppendCalls is Calls into a slice of the caller's.
	AppendCalls(calls []Call) []Call
	// Answer takes the end of a call.
	Answer(now clock.Instant, store int, seq uint32, a Answer)
	// Wake takes the passing of time.
	Wake(now clock.Instant)
	// Next returns when Wake is due, or Never.
	Next() clock.Instant
}

// Call is one request to send to one store.
type Call struct {
	Store int
	Seq   uint32
	Req   Request
}

// Phase is where a Quorum stands.
type Phase uint8

// The phases.
const (
	Idle      Phase = iota
	Asking          // an attempt is under way, confirming included
	Held            // a confirmed quorum stood, and no more than the caller's clock says it ended
	Failed          // the attempt was rolled back, or is being
	Lost            // a quorum can no longer be made; only Release sends again
	Releasing       // the holder gave it back
)

// Failure says why an attempt failed.
type Failure uint8

// The failures.
const (
	NoFailure   Failure = iota
	ByHeld              // contention: those that granted, were contended or not asked could have made a quorum
	ByNoQuorum          // outage
	ByMismatch          // a store serves another set
	ByExpired           // won, or about to win, too late to be of use
	ByAbandoned         // the caller gave up
)

// Quorum is one owner's dealings with a set of stores. What is small stands
// together, so that a held lease is small: see [NewLeaseOf].
type Quorum struct {
	cfg     *Config // never changed, since others may share it
	own     Own
	slots   []slot
	room    *Room // nil outside of events, where a driver lends it
	seq     uint32
	attempt uint32
	sick    Set // as [Pace] says
	probe   Set // as [Pace] says
	phase   Phase
	failure Failure
	mode    Mode
	kind    Kind
	asked   uint8 // how many stores were asked in this attempt
	turn    bool  // the attempt asks only where the turn in line is ours

	previous Previous // how the holder before the lease ended

	start   clock.Instant // when the attempt began: before its first request left
	high    int64         // highest grant token seen in the attempt; the lease's token once held
	counter int64         // highest that a refusal told
	until   clock.Instant // end of validity
	ttl     time.Duration // last confirmed; before, what is asked for
	round   round
	change  *change // nil but during a promotion
	line    line
}

// round is one extension of all votes. Rounds never overlap.
type round struct {
	n       uint32
	active  bool
	won     bool
	readers uint16 // the most that an answer told, as far as it goes
	start   clock.Instant
	ttl     time.Duration
}

// NewQuorum returns a Quorum that has asked nothing yet.
func NewQuorum(cfg Config) *Quorum {
	var q Quorum
	q.init(&cfg, cfg.own())
	q.lend(&Room{}) // for good
	return &q
}

// Phase returns where the Quorum stands.
func (q *Quorum) Phase() Phase { return q.phase }

// Failure returns why the last attempt failed.
func (q *Quorum) Failure() Failure { return q.failure }

// Attempt returns the number of the last attempt, from 1.
func (q *Quorum) Attempt() uint32 { return q.attempt }

// Token returns the lease's token once held.
func (q *Quorum) Token() int64 {
	if q.Promoting() {
		return q.change.token
	}
	return q.high
}

// Previous returns how the last holder before the lease ended.
func (q *Quorum) Previous() Previous { return q.previous }

// Until returns the end of validity, drift taken off. It means nothing unless held.
func (q *Quorum) Until() clock.Instant { return q.until }

// TTL returns the TTL last confirmed.
func (q *Quorum) TTL() time.Duration { return q.ttl }

// Extending reports whether a round is under way, and whether it has won.
func (q *Quorum) Extending() (active, won bool) { return q.round.active, q.round.won }

// Next returns when Wake is due, or Never.
func (q *Quorum) Next() clock.Instant {
	at := Never
	if q.phase == Asking {
		at = q.deadline()
	}
	for i := range q.slots {
		at = min(at, q.slots[i].next(q.phase == Asking))
	}
	return at
}

// deadline is D of the protocol: the attempt as a whole must be over by then.
func (q *Quorum) deadline() clock.Instant { return q.start.Add(q.cfg.Within) }

// Begin starts the next attempt. It does not wait for the roll-back of the
// one before: where it asks, its request replaces a release not yet sent.
func (q *Quorum) Begin(now clock.Instant) {
	q.attempt++
	q.begin(now)
}

// BeginAs starts the attempt of an outer owner: a composite passes it through.
// floor is the least token to end up with.
func (q *Quorum) BeginAs(now clock.Instant, attempt uint32, floor int64) {
	q.attempt = attempt
	q.begin(now)
	q.high = floor
	q.advance(now)
}

func (q *Quorum) begin(now clock.Instant) {
	q.phase, q.failure, q.turn = Asking, NoFailure, false
	q.asked, q.start, q.high = 0, now, 0
	for i := range q.slots {
		q.slots[i].reset()
	}
	if !q.cfg.Member {
		q.advance(now)
	}
}

// Answer takes the end of a call. An answer to a call that is not in flight is
// ignored.
func (q *Quorum) Answer(now clock.Instant, store int, seq uint32, a Answer) {
	s := &q.slots[store]
	if !s.busy || s.call.seq != seq {
		return
	}
	c := s.call
	s.busy, s.late = false, false
	if c.verb != Release || q.phase == Releasing {
		s.took = now.Sub(c.sent)
	}
	if a.Outcome == Granted {
		s.mode = a.Mode
	}
	switch c.verb {
	case Acquire:
		if q.cfg.Queues && c.kind == New {
			q.placed(s, c, a)
		}
		switch {
		case c.demotes:
			q.demoted(now, store, c, a)
		case c.wait == WaitQueue:
			q.stood(now, store, c, a)
		default:
			q.acquired(now, store, c, a)
		}
	case Extend:
		q.extended(now, store, c, a)
	case Release:
		q.released(now, store, a)
	}
	q.advance(now)
	q.pump(now, store)
}

// Wake takes the passing of time.
func (q *Quorum) Wake(now clock.Instant) {
	for i := range q.slots {
		q.slots[i].tick(now)
	}
	q.advance(now)
	for i := range q.slots {
		q.pump(now, i)
	}
}

// advance looks whether anything has been decided.
func (q *Quorum) advance(now clock.Instant) {
	switch q.phase {
	case Asking:
		q.ask(now)
	case Held:
		q.settleRound(now)
	}
}

// pump sends what waits for a store, if it may. At most one call is in flight
// to a store (I1), so whatever waits leaves after it has ended (I2).
func (q *Quorum) pump(now clock.Instant, i int) {
	s := &q.slots[i]
	if s.busy {
		return
	}
	switch {
	case s.want == wantAcquire:
		// A younger attempt replaces the older one in the store, so a release of
		// that one need not be sent first.
		s.want, s.owe = wantNothing, false
		s.ask()
		q.send(now, i, Acquire, q.kind, q.attempt, q.high)
	case s.want == wantStand:
		s.want, s.owe, s.stand = wantNothing, false, true
		s.ask()
		q.send(now, i, Acquire, New, q.attempt, 0)
		s.stand = false
	case s.owe && now >= s.retryAt:
		q.send(now, i, Release, New, s.sent, 0)
	case s.owe:
	case s.want == wantExtend:
		s.want = wantNothing
		q.send(now, i, Extend, New, q.attempt, q.high)
	case s.want == wantDemote:
		s.want = wantNothing
		s.ask()
		q.send(now, i, Acquire, Convert, q.attempt, q.high)
		s.call.demotes = true
	case s.want == wantRepair:
		s.want = wantNothing
		s.ask()
		q.send(now, i, Acquire, Repair, q.attempt, q.high)
	}
}

func (q *Quorum) send(now clock.Instant, i int, verb Verb, kind Kind, attempt uint32, floor int64) {
	s := &q.slots[i]
	limit := q.cfg.CallLimit
	if verb == Release {
		limit = min(limit, max(s.oweUntil.Sub(now), time.Millisecond))
	} else if q.phase == Asking {
		// The shared deadline bounds the sum: a store gets its slice or what is left.
		limit = max(min(limit, q.deadline().Sub(now)), 0)
		s.patience = min(s.patience, now.Add(limit))
	}
	q.seq++
	s.busy, s.late = true, false
	s.slow, s.hedge = false, now.Add(min(q.patience(i), limit))
	s.call = call{seq: q.seq, verb: verb, kind: kind, attempt: attempt, round: q.round.n, floor: floor, sent: now, limit: now.Add(limit)}
	if verb == Acquire {
		s.sent = max(s.sent, attempt)
	}
	r := q.cfg.Request
	r.Verb, r.Kind, r.Floor, r.Limit = verb, kind, floor, limit
	r.Key, r.Mode, r.TTL, r.Owner = q.own.Key, q.mode, q.ttl, Owner{q.own.ID, attempt}
	if r.Wait = WaitNone; verb == Acquire && kind == New {
		q.inLine(s, &r)
	}
	s.call.wait = r.Wait
	if q.round.active && (verb == Extend || kind == Convert) {
		r.TTL = q.round.ttl
	}
	if verb == Release {
		r.Entomb = s.linger || q.cfg.Member || q.cfg.Doubles.Has(i)
	}
	if q.cfg.Bugs.has(BugOneOwner) {
		r.Owner.Attempt = 1
	}
	q.room.calls = append(q.room.calls, Call{Store: i, Seq: q.seq, Req: r})
}

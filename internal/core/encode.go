package core

import (
	"slices"

	"github.com/quorumlock/quorum/clock"
)

// Clone returns a copy that shares nothing with q that either can change.
func (q *Quorum) Clone() *Quorum {
	c := *q
	c.room = q.room.clone()
	c.slots = slices.Clone(q.slots)
	trips := make([]trip, len(c.slots))
	for i := range c.slots {
		if t := c.slots[i].trip; t != nil {
			trips[i] = *t
			c.slots[i].trip = &trips[i]
		}
	}
	return &c
}

// Clone returns a copy that shares nothing with l that either can change.
func (l *Lease) Clone() *Lease {
	c := *l
	c.q = *l.q.Clone()
	if l.wait != nil {
		mine := *l.wait
		mine.line = l.line.clone()
		c.wait = &mine
	}
	if r := l.asked; r != nil {
		c.asked = &requests{slices.Clone(r.wishes), slices.Clone(r.inProgress), slices.Clone(r.changes), r.step}
	}
	return &c
}

// Clone returns a copy that shares nothing with f that either can change.
func (f *Refill) Clone() *Refill {
	c := *f
	c.out = slices.Clone(f.out)
	return &c
}

// Append adds q to b so that two Quorums of one configuration that will behave
// alike from now on add the same bytes. Instants are written relative to now;
// sequence numbers and durations kept for people are left out.
func (q *Quorum) Append(b []byte, now clock.Instant) []byte {
	e := encoder{b: b, now: now}
	e.num(int64(q.attempt), int64(q.phase), int64(q.failure), int64(q.asked), q.high, int64(q.ttl))
	e.num(int64(q.round.n), flag(q.round.active), flag(q.round.won), int64(q.round.ttl), int64(q.round.readers))
	e.num(int64(q.mode), flag(q.Promoting()))
	if c := q.change; c != nil {
		e.num(int64(c.votes), c.token)
	}
	e.num(q.line.ticket, flag(q.turn))
	e.at(q.start, q.until, q.round.start)
	for i := range q.slots {
		e.slot(&q.slots[i])
		if q.round.active {
			e.num(int64(q.slots[i].extended), int64(q.slots[i].repaired))
		}
	}
	return e.b
}

// Append adds l to b as [Quorum.Append] does.
func (l *Lease) Append(b []byte, now clock.Instant) []byte {
	e := encoder{b: l.q.Append(b, now), now: now}
	e.num(int64(l.stage), int64(l.rng), l.q.counter, int64(l.reason), int64(l.misses), int64(l.q.room.notes()))
	e.num(flag(l.inRound), flag(l.wonSaid), flag(l.warned), flag(l.returning), flag(l.keptBack), int64(l.hears))
	e.wait(l.wait)
	e.at(l.renewAt, l.maxAt, l.roundAt, l.watchAt, l.minAt)
	if r := l.asked; r != nil {
		e.num(int64(r.step))
		for _, w := range append(slices.Clone(r.wishes), r.inProgress...) {
			e.num(int64(w.ttl))
		}
		for _, c := range r.changes {
			e.num(int64(c.to), flag(c.told))
		}
	}
	return e.b
}

func (e *encoder) wait(w *wait) {
	if w == nil {
		return
	}
	e.num(int64(w.calm), w.counter, int64(w.last), int64(w.end), int64(w.races))
	e.num(flag(w.once), flag(w.started), flag(w.missed), flag(w.racing))
	e.at(w.giveUp, w.retryAt, w.stillAt, w.endBy)
	e.waiting(w.line)
}

// Append adds f to b as [Quorum.Append] does.
func (f *Refill) Append(b []byte, now clock.Instant) []byte {
	e := encoder{b: b, now: now}
	e.num(int64(f.stage), int64(f.heard), int64(f.voting), int64(f.spoke), f.step, flag(f.alone), flag(f.stuck), flag(f.inside))
	e.at(f.wakeAt)
	return append(e.b, f.quarantine...)
}

type encoder struct {
	b   []byte
	now clock.Instant
}

func (e *encoder) num(values ...int64) {
	for _, v := range values {
		for u := uint64(v); ; u >>= 7 {
			if u < 0x80 {
				e.b = append(e.b, byte(u))
				break
			}
			e.b = append(e.b, byte(u)|0x80)
		}
	}
}

func (e *encoder) at(instants ...clock.Instant) {
	for _, t := range instants {
		if t != Never && t != -Never {
			t -= e.now
		}
		e.num(int64(t))
	}
}

func (e *encoder) slot(s *slot) {
	flags := flag(s.busy) | flag(s.busy && s.late)<<1 | flag(s.vote == pending && s.overdue)<<2 | flag(s.asked)<<3 | flag(s.clean)<<4 |
		flag(s.linger)<<5 | flag(s.shut)<<6 | flag(s.owe)<<7 | flag(s.answered)<<8 | flag(s.failed)<<9 |
		flag(s.rival)<<10 | flag(s.forced)<<11 | flag(s.busy && s.before)<<12 | flag(s.slow)<<13 |
		flag(s.stale)<<14 | flag(s.stands)<<15
	e.num(flags, int64(s.want), int64(s.vote), s.token, int64(s.raises), int64(s.outcome), int64(s.sent))
	if s.busy {
		c := &s.call
		e.num(int64(c.verb), int64(c.kind), int64(c.attempt), int64(c.round), c.floor, flag(c.demotes), int64(c.wait))
		e.at(c.limit)
	}
	if s.vote == pending {
		e.at(s.patience, s.hedge)
	}
	if s.owe {
		e.num(int64(s.tries))
		e.at(s.retryAt, s.oweUntil)
	}
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

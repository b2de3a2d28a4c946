package sim

import (
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// driver carries a machine's calls to stores and their answers back, as the
// production driver does, and takes no decision of the protocol.
type driver struct {
	c       *Client
	m       machine
	lease   *Lease // what it is for: one of the four
	refill  *refill
	verb    *verb
	errand  *errand
	base    int          // the first of the stores that it asks
	members []int        // or all of them, where they are not in a row
	health  *core.Health // what is learnt of them; nil learns nothing
	flights []flight
	timer   time.Duration // true time of the wake-up that is on its way
	soonest time.Duration // and of the next
	dead    bool          // the process died
}

// machine is one that says what to send without a slice of its own for it.
type machine interface {
	core.Machine
	AppendCalls([]core.Call) []core.Call
}

// flight is a call that has not ended. It ends with its answer, or unanswered
// at its limit, which the client's own clock decides.
type flight struct {
	store int
	seq   uint32
	verb  core.Verb
	msg   uint64
	left  clock.Instant
	limit clock.Instant
	inner *verb // of a call to a composite
}

// owner is the lease that a message is of, or nil for a refill.
func (d *driver) owner() *Lease {
	if d.verb != nil {
		return d.verb.lease
	}
	return d.lease
}

func (d *driver) serial() int {
	if l := d.owner(); l != nil {
		return l.serial
	}
	return 0
}

func (d *driver) key() int {
	if l := d.owner(); l != nil {
		return l.key
	}
	return -1
}

// gone reports whether the process died.
func (d *driver) gone() bool { return d.dead || d.verb != nil && d.verb.lease.dead }

// land ends a call, if it has not ended before.
func (d *driver) land(store int, seq uint32, o core.Outcome) bool {
	for i := range d.flights {
		if f := &d.flights[i]; f.store == store && f.seq == seq {
			if d.health != nil {
				now := d.c.Now()
				d.health.Ended(now, store, now.Sub(f.left), o != core.Unknown && o != core.Undelivered)
			}
			last := len(d.flights) - 1
			d.flights[i] = d.flights[last]
			d.flights = d.flights[:last]
			return true
		}
	}
	return false
}

func (d *driver) answered(store int, seq uint32, fresh bool, a core.Answer) {
	// A vote that a change of mode lost is given back later, when nothing rests on
	// it, or ends by itself: late grants are those of fresh requests.
	if l := d.lease; l != nil && fresh && l.stage == core.Holding && l.until > d.c.w.now && a.Outcome == core.Granted && a.Token > l.token {
		l.above = l.above.With(d.at(store))
	}
	d.m.Answer(d.c.Now(), store, seq, a)
	d.met(store, a)
	d.settle()
}

// met lets the client know a store that is in quarantine.
func (d *driver) met(store int, a core.Answer) {
	if a.Outcome == core.Quarantined && (d.verb != nil || d.lease != nil && d.c.w.zone == nil) {
		d.c.refill(d.at(store))
	}
}

// woken is the timer: whatever is due by the client's clock happens.
func (d *driver) woken(e *event) {
	if d.gone() || e.at != d.timer {
		return // another wake-up has taken its place
	}
	if d.c.paused > d.c.w.now {
		d.timer = d.c.paused
		d.c.w.push(event{at: d.timer, kind: wake, d: d})
		return
	}
	// No timer of an operating system fires twice within less than this.
	d.timer, d.soonest = never, d.c.w.now+50*time.Microsecond
	now := d.c.Now()
	// A call that ends at its limit and the timer of the machine race.
	first := d.c.w.choices.Choose(OfTie, 2) == 0
	d.learn(now)
	if first {
		d.m.Wake(now)
	}
	d.expire(now)
	if !first {
		d.m.Wake(now)
	}
	d.settle()
}

// learn passes what is known of the stores' speed on to the machine, when the
// driver of the library does.
func (d *driver) learn(now clock.Instant) {
	switch {
	case d.health == nil:
	case d.verb != nil:
		d.verb.q.Learn(d.health.Pace(now, d.c.w.zone.N()))
	default:
		d.lease.m.Learn(d.health.Pace(now, d.lease.of.Rule.N()))
	}
}

// expire ends the calls whose limit is over: unanswered, so unknown.
func (d *driver) expire(now clock.Instant) {
	for i := 0; i < len(d.flights); {
		f := d.flights[i]
		if now < f.limit || d.c.w.cfg.Mutant == CallsWithoutLimit {
			i++
			continue
		}
		d.land(f.store, f.seq, core.Unknown)
		if f.inner != nil {
			f.inner.stopped = true
		}
		d.c.w.emit(Event{What: TimedOut, Client: d.c.id, Store: d.at(f.store), Lease: d.serial(), Msg: f.msg, Key: d.key(), Verb: f.verb})
		d.m.Answer(now, f.store, f.seq, core.Answer{Outcome: core.Unknown})
	}
}

// settle carries out what an event gave rise to.
func (d *driver) settle() {
	w := d.c.w
	switch {
	case d.lease != nil:
		d.lease.settled()
	case d.verb != nil:
		defer d.verb.settled()
	case d.errand != nil:
		d.errand.settled()
	default:
		d.refill.settled()
	}
	now := d.c.Now()
	// Calls of composites begin rounds of their own, which settle in here: what
	// they send goes behind what is being sent.
	first := len(w.calls)
	w.calls = d.m.AppendCalls(w.calls)
	last := len(w.calls)
	for i := first; i < last; i++ {
		call := &w.calls[i]
		if d.lease != nil {
			d.lease.sends(now, call)
		} else if d.refill != nil && d.c.closed {
			w.violate(AfterEnd, -1, "client %d looks after store %s although its locker is closed", d.c.id, StoreName(call.Store))
		}
		f := flight{store: call.Store, seq: call.Seq, verb: call.Req.Verb, left: now, limit: now.Add(call.Req.Limit)}
		switch {
		case d.verb != nil && d.verb.stopped:
			continue
		case d.lease != nil && w.zone != nil:
			f.inner = w.enter(d, call)
		default:
			f.msg = w.post(d, call)
		}
		d.flights = append(d.flights, f)
		if d.health != nil {
			d.health.Sent(now, call.Store)
		}
		if f.inner != nil {
			f.inner.begin()
		}
	}
	w.calls = w.calls[:first]
	d.arm()
	if d.lease != nil {
		d.lease.rest()
	}
}

// arm sets the timer to the next instant that counts.
func (d *driver) arm() {
	next := d.m.Next()
	if d.c.w.cfg.Mutant != CallsWithoutLimit {
		for i := range d.flights {
			next = min(next, d.flights[i].limit)
		}
	}
	if at := max(d.c.clock.due(next), d.soonest); at < d.timer {
		d.timer = max(at, d.c.w.now)
		d.c.w.push(event{at: d.timer, kind: wake, d: d})
	}
}

package quorum

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// driver carries a machine's calls to stores and their answers back, and takes
// no decision of the protocol: there is no if about grants here.
//
// Every event runs under mu, by whichever goroutine brings it; what it gives
// rise to (calls, news for the user) happens after mu is free. There is no
// goroutine that waits for an event: a call has one until the store's answer,
// and an agenda or a timer stands for the machine's next instant.
type driver struct {
	*means
	owner owner

	mu      sync.Mutex
	m       core.Machine
	base    context.Context // carries values to the stores; it is never cancelled
	timer   *time.Timer
	due     clock.Instant // under the agenda's mu, as the next four: when the machine is woken
	firm    clock.Instant // the same without a renewal, which may wait for its turn
	at      clock.Instant // when the agenda looks at it, no later than due
	place   int32         // in the agenda, from 1; 0 is none
	turn    turn
	stopped bool     // nothing leaves any more
	replies *[]heard // of each store, the last; nil while there was nothing to say
}

// means is what a driver carries with. The leases of a Locker share one, since
// each is to be small.
type means struct {
	set   *CombinedStore
	clock clock.Clock
	// met hears every answer, without the driver's mu.
	met func(store int, err error, nested []Vote)
	// heard hears those that are no release's, under mu.
	heard func(store int, a core.Answer)

	crew   *crew   // makes the calls; nil starts a goroutine for each
	agenda *agenda // wakes the machine; nil has a timer for it
	health *health // learns from them; nil learns nothing
}

// owner is whose machine a driver drives. settled runs under mu after every
// event; what it returns, if anything, runs after mu is free and before the
// calls leave.
type owner interface {
	settled(now clock.Instant) func()
}

// heard is what a store answered last: to a release, and to anything else.
type heard struct {
	undone error
	err    error
	nested []Vote
	at     clock.Instant
}

// hear keeps what a store answered. Most grants say no more than that, and a
// lease that had no other answers keeps none. The caller holds d.mu.
func (d *driver) hear(now clock.Instant, store int, verb core.Verb, err error, nested []Vote) {
	if d.replies == nil && err == nil && nested == nil {
		return
	}
	if d.replies == nil {
		all := make([]heard, len(d.set.members))
		d.replies = &all
	}
	if r := &(*d.replies)[store]; verb == core.Release {
		r.undone = err
	} else {
		r.err, r.nested, r.at = err, nested, now
	}
}

// reply is what a store answered last. The caller holds d.mu.
func (d *driver) reply(store int) heard {
	if d.replies == nil {
		return heard{}
	}
	return (*d.replies)[store]
}

// newDriver returns a driver whose calls carry the values of ctx.
func newDriver(ctx context.Context, m core.Machine, o owner, with *means) *driver {
	return &driver{means: with, owner: o, m: m, base: context.WithoutCancel(ctx)}
}

// do runs one event and hands out what follows from it.
func (d *driver) do(event func(now clock.Instant)) {
	if last, ok := d.step(event); ok {
		d.hand(last)
	}
}

// step runs one event and hands out the calls that follow from it, but for the
// last that somebody must wait for, which it returns: a goroutine that makes
// calls goes on with that one itself. Asked in order, a store after another, a
// lease so stays with one.
func (d *driver) step(event func(now clock.Instant)) (last delivery, ok bool) {
	room, _ := rooms.Get().(*core.Room)
	d.mu.Lock()
	now := d.clock.Now()
	lodger, lodges := d.m.(lodger)
	if lodges && lodger.Lend(room) {
		d.learn(now)
	}
	event(now)
	news := d.owner.settled(now)
	d.arm(now)
	var calls []core.Call
	if lodges {
		calls = lodger.Vacate()
	} else {
		calls = d.m.Calls()
	}
	if d.stopped {
		calls = nil
	}
	base := d.base
	lease, _ := d.owner.(*Lease)
	tells := lease != nil && lease.tells()
	d.mu.Unlock()
	if news != nil {
		news()
	}
	var begun []Call // one allocation for them all
	for i, c := range calls {
		job := delivery{d: d, base: base, at: now, call: c}
		if d.health != nil {
			d.health.sent(now, c.Store)
		}
		if s := d.set.async[c.Store]; s != nil && c.Req.Verb <= core.Release {
			if begun == nil {
				begun = make([]Call, len(calls))
			}
			if job.begin(s, &begun[i], tells) {
				continue
			}
		}
		if ok {
			d.hand(last)
		}
		last, ok = job, true
	}
	rooms.Put(room)
	return last, ok
}

// hand has somebody make a call.
func (d *driver) hand(job delivery) {
	if d.crew != nil {
		d.crew.take(job)
	} else {
		go job.alone()
	}
}

// lodger is a machine that is lent what it needs for an event: a lease.
type lodger interface {
	Lend(r *core.Room) (rested bool)
	Vacate() []core.Call
	Firm() clock.Instant
	Renewing() bool
	Defer(renewal bool)
}

// rooms are lent to machines, one event after another.
var rooms = sync.Pool{New: func() any { return &core.Room{} }}

// learn passes what is known of the stores' speed on to the machine. The caller
// holds mu.
func (d *driver) learn(now clock.Instant) {
	if m, ok := d.m.(interface{ Learn(core.Pace) }); ok && d.health != nil {
		m.Learn(d.health.pace(now))
	}
}

// arm has the machine woken at its next instant.
func (d *driver) arm(now clock.Instant) {
	next := d.m.Next()
	if d.stopped {
		next = core.Never
	}
	switch {
	case d.agenda != nil:
		firm, renewing := next, false
		if m, ok := d.m.(lodger); ok && !d.stopped {
			firm, renewing = m.Firm(), m.Renewing()
		}
		d.agenda.set(d, next, firm, renewing)
	case next == core.Never:
		if d.timer != nil {
			d.timer.Stop()
		}
	case d.timer == nil:
		d.timer = time.AfterFunc(next.Sub(now), d.wake)
	default:
		// A timer that has fired and waits for mu wakes the machine once too
		// often, which does nothing.
		d.timer.Reset(next.Sub(now))
	}
}

func (d *driver) wake() { d.do(d.pass) }

// pass lets the machine know that time has passed.
func (d *driver) pass(now clock.Instant) {
	d.learn(now)
	if m, ok := d.m.(lodger); ok && d.agenda != nil {
		m.Defer(d.agenda.waits(d))
	}
	d.m.Wake(now)
}

// stop keeps anything more from leaving; calls in flight end by their limits.
func (d *driver) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	d.arm(d.clock.Now())
}

// votes says what each store answered last. The caller holds mu.
func (d *driver) votes(view func(i int) core.VoteView) []Vote {
	out := make([]Vote, len(d.set.members))
	for i, m := range d.set.members {
		v := view(i)
		out[i] = Vote{Store: m.Name(), Outcome: Outcome(v.Outcome), Token: v.Token, Mode: Mode(v.Mode), Took: v.Took}
		reply := d.reply(i)
		err, nested := reply.err, reply.nested
		switch {
		case v.Released:
			err = reply.undone
			nested = nestedVotes(Grant{}, err)
		case v.Pending:
			if err, nested = errPending, nil; v.Late {
				err = errLate
			}
		case v.Outcome == core.NotAsked:
			nested = nil
		}
		out[i].Votes = nested
		if v.Outcome != core.Granted && v.Outcome != core.NotAsked {
			out[i].Err = err
		}
	}
	return out
}

// The votes of stores that were asked and have not answered.
var (
	errPending = errors.New("no answer yet")
	errLate    = errors.New("no answer in time")
	errNoNeed  = errors.New("not waited for, the other stores decided")
)

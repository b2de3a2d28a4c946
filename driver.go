package quorum

import (
	"context"
	"errors"
	"fmt"
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
// and a timer stands for the machine's next instant.
type driver struct {
	set   *CombinedStore
	clock clock.Clock
	// settled runs under mu after every event; what it returns, if anything,
	// runs after mu is free and before the calls leave.
	settled func(now clock.Instant) func()
	// met hears every answer, without mu.
	met    func(store int, err error, nested []Vote)
	crew   *crew   // makes the calls; nil starts a goroutine for each
	health *health // learns from them; nil learns nothing

	mu      sync.Mutex
	m       core.Machine
	base    context.Context // carries values to the stores; it is never cancelled
	timer   *time.Timer
	stopped bool // nothing leaves any more
	// Of each store, what it answered last: to a release, and to anything else.
	undone []error
	errs   []error
	nested [][]Vote
	last   []core.Answer
}

func newDriver(ctx context.Context, set *CombinedStore, c clock.Clock, m core.Machine) *driver {
	n := len(set.members)
	return &driver{
		set: set, clock: c, m: m, base: context.WithoutCancel(ctx),
		undone: make([]error, n), errs: make([]error, n), nested: make([][]Vote, n), last: make([]core.Answer, n),
	}
}

// do runs one event and carries out what follows from it.
func (d *driver) do(event func(now clock.Instant)) {
	d.mu.Lock()
	now := d.clock.Now()
	event(now)
	var news func()
	if d.settled != nil {
		news = d.settled(now)
	}
	calls := d.m.Calls()
	if d.stopped {
		calls = nil
	}
	base := d.base
	d.arm(now)
	d.mu.Unlock()
	if news != nil {
		news()
	}
	for _, c := range calls {
		if job := (delivery{d, base, c}); d.crew != nil {
			d.crew.take(job)
		} else {
			go job.carry()
		}
	}
}

// learn passes what is known of the stores' speed on to the machine. The caller
// holds mu.
func (d *driver) learn(now clock.Instant) {
	if m, ok := d.m.(interface{ Learn(core.Pace) }); ok && d.health != nil {
		m.Learn(d.health.pace(now))
	}
}

// arm sets the timer to the machine's next instant.
func (d *driver) arm(now clock.Instant) {
	next := d.m.Next()
	switch {
	case next == core.Never || d.stopped:
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

func (d *driver) wake() {
	d.do(func(now clock.Instant) {
		d.learn(now)
		d.m.Wake(now)
	})
}

// stop keeps anything more from leaving; calls in flight end by their limits.
func (d *driver) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stopped = true
	if d.timer != nil {
		d.timer.Stop()
	}
}

// delivery is one call to one store.
type delivery struct {
	d    *driver
	base context.Context
	call core.Call
}

// carry makes the call, bounded by its limit, and brings the answer back. A
// store that ignores its context is waited for by nobody but this goroutine.
func (j delivery) carry() {
	d, c := j.d, j.call
	ctx, cancel := context.WithTimeout(j.base, c.Req.Limit)
	defer cancel()
	began := d.clock.Now()
	if d.health != nil {
		d.health.sent(began, c.Store)
	}
	a, nested, err := d.ask(ctx, d.set.members[c.Store], c.Req)
	if d.health != nil {
		now := d.clock.Now()
		d.health.ended(now, c.Store, now.Sub(began), well(a.Outcome, err))
	}
	if err != nil && a.Outcome == core.Unknown && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v: %w", c.Req.Limit, err)
	}
	if verb := c.Req.Verb; verb != core.Release && verb != core.Raise {
		if of := d.set.servers.meet(c.Store, a.Server); of >= 0 {
			a.Outcome, a.Clean = core.Twin, false
			text := twinError(d.set.members[c.Store].Name(), d.set.members[of].Name()).Error()
			err = &RefusedError{Outcome: OutcomeTwin, Reason: text}
		}
	}
	if d.met != nil {
		d.met(c.Store, err, nested)
	}
	d.do(func(now clock.Instant) {
		if c.Req.Verb == core.Release {
			d.undone[c.Store] = err
		} else {
			d.errs[c.Store], d.nested[c.Store], d.last[c.Store] = err, nested, a
		}
		d.m.Answer(now, c.Store, c.Seq, a)
	})
}

// ask puts a request to a store. A panic of a store is an unknown outcome.
func (d *driver) ask(ctx context.Context, s Store, r core.Request) (a core.Answer, nested []Vote, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store %q panicked: %v", s.Name(), p)
			a = core.Answer{Outcome: core.Unknown}
		}
	}()
	switch r.Verb {
	case core.Acquire:
		g, err := s.Acquire(ctx, fromCore(r))
		if err == nil && g.Token < 1 { // it may have granted, and this is no vote to count on
			err = fmt.Errorf("store %q granted without a token", s.Name())
		}
		return answerOf(g, err), nestedVotes(g, err), err
	case core.Extend:
		g, err := s.Extend(ctx, fromCore(r))
		return answerOf(g, err), nestedVotes(g, err), err
	case core.Release:
		err := s.Release(ctx, fromCore(r))
		return answerOf(Grant{}, err), nil, err
	case core.ReadStep:
		return readStep(ctx, s, fromCore(r))
	default:
		err := raise(ctx, s, fromCore(r), Raise(r.Raise))
		return answerOf(Grant{}, err), nil, err
	}
}

// readStep reads a store's record. A store without one never forgets, and
// always votes.
func readStep(ctx context.Context, s Store, r Request) (core.Answer, []Vote, error) {
	high, ok := As[HighWater](s)
	if !ok {
		return core.Answer{Outcome: core.Granted}, nil, nil
	}
	step, err := high.ReadStep(ctx, r)
	if err != nil {
		return answerOf(Grant{}, err), nil, err
	}
	a := core.Answer{Outcome: core.Granted, Server: step.Server, Left: step.Left, Step: core.StepReading{
		Step: step.Step, Base: step.Base, Quarantine: step.Quarantine, Over: step.Over,
	}}
	return a, nil, nil
}

func raise(ctx context.Context, s Store, r Request, o Raise) error {
	high, ok := As[HighWater](s)
	if !ok {
		return Undelivered(fmt.Errorf("%w: store %q keeps no step", ErrUnsupported, s.Name()))
	}
	return high.Raise(ctx, r, o)
}

// votes says what each store answered last. The caller holds mu.
func (d *driver) votes(view func(i int) core.VoteView) []Vote {
	out := make([]Vote, len(d.set.members))
	for i, m := range d.set.members {
		v := view(i)
		out[i] = Vote{Store: m.Name(), Outcome: Outcome(v.Outcome), Token: v.Token, Mode: Mode(v.Mode), Took: v.Took}
		err, nested := d.errs[i], d.nested[i]
		switch {
		case v.Released:
			err, nested = d.undone[i], nestedVotes(Grant{}, d.undone[i])
		case v.Pending:
			err, nested = errPending, nil
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

// errPending is the vote of a store that was asked and has not answered.
var errPending = errors.New("no answer yet")

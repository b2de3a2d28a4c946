package quorum

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// delivery is one call to one store, or the passing of time.
type delivery struct {
	d    *driver
	wake bool // no call
	base context.Context
	at   clock.Instant // when the machine sent it
	call core.Call
}

// alone makes the call on a goroutine of its own.
func (j delivery) alone() {
	var limit alarm
	defer limit.close()
	j.run(&limit)
}

// run makes the call, and those that follow from it one by one.
func (j delivery) run(limit *alarm) {
	for more := true; more; {
		if j.wake {
			j, more = j.d.step(j.d.pass)
		} else {
			j, more = j.carry(limit)
		}
	}
}

// carry makes the call, bounded by its limit, and brings the answer back. A
// store that ignores its context is waited for by nobody but this goroutine.
func (j delivery) carry(limit *alarm) (next delivery, more bool) {
	d, c := j.d, &j.call
	ctx := limit.set(j.base, c.Req.Limit)
	if d.health != nil {
		d.health.sent(j.at, c.Store)
	}
	a, nested, err := d.ask(ctx, d.set.members[c.Store], &c.Req)
	clear := well(a.Outcome, err)
	if err != nil && (a.Outcome == core.Unknown || a.Outcome == core.Undelivered) && ctx.Err() != nil {
		err = fmt.Errorf("no answer within %v (CallLimit): %w", c.Req.Limit, err)
	}
	limit.stop()
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
	return d.step(func(now clock.Instant) {
		if d.health != nil {
			d.health.ended(now, c.Store, now.Sub(j.at), clear)
		}
		d.hear(now, c.Store, c.Req.Verb, err, nested)
		if d.answered != nil && c.Req.Verb != core.Release {
			d.answered(c.Store, a)
		}
		d.m.Answer(now, c.Store, c.Seq, a)
	})
}

// ask puts a request to a store. A panic of a store is an unknown outcome.
func (d *driver) ask(ctx context.Context, s Store, r *core.Request) (a core.Answer, nested []Vote, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store %q panicked: %v", s.Name(), p)
			a = core.Answer{Outcome: core.Unknown}
		}
	}()
	switch r.Verb {
	case core.Acquire:
		g, err := s.Acquire(ctx, fromCore(*r))
		if err == nil && g.Token < 1 { // it may have granted, and this is no vote to count on
			err = fmt.Errorf("store %q granted without a token", s.Name())
		}
		return answerOf(g, err), nestedVotes(g, err), err
	case core.Extend:
		g, err := s.Extend(ctx, fromCore(*r))
		return answerOf(g, err), nestedVotes(g, err), err
	case core.Release:
		err := s.Release(ctx, fromCore(*r))
		return answerOf(Grant{}, err), nil, err
	case core.ReadStep:
		return readStep(ctx, s, fromCore(*r))
	case core.ReadSets:
		return readSets(ctx, s, fromCore(*r))
	case core.Serve:
		return serve(ctx, s, fromCore(*r), r.Serve)
	default:
		err := raise(ctx, s, fromCore(*r), Raise(r.Raise))
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

package quorum

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/alarm"
	"github.com/quorumlock/quorum/internal/core"
)

// delivery is one call to one store, its answer, or the passing of time.
type delivery struct {
	d    *driver
	wake bool   // no call
	end  *ended // nor this
	base context.Context
	at   clock.Instant // when the machine sent it
	call core.Call
}

// alone makes the call on a goroutine of its own.
func (j delivery) alone() {
	var limit alarm.Alarm
	defer limit.Close()
	j.run(&limit)
}

// run makes the call, and those that follow from it one by one.
func (j delivery) run(limit *alarm.Alarm) {
	for more := true; more; {
		switch {
		case j.wake:
			j, more = j.d.step(j.d.pass)
		case j.end != nil:
			j, more = j.end.call.answered(j.end.g, j.end.err)
		default:
			j, more = j.carry(limit)
		}
	}
}

// carry makes the call, bounded by its limit, and brings the answer back. A
// store that ignores its context is waited for by nobody but this goroutine.
func (j delivery) carry(limit *alarm.Alarm) (next delivery, more bool) {
	d, c := j.d, &j.call
	ctx := limit.Set(j.base, c.Req.Limit)
	a, nested, err := d.ask(ctx, d.set.members[c.Store], &c.Req)
	if err != nil && unclear(a) && ctx.Err() != nil {
		err = lateError(c.Req.Limit, err)
	}
	limit.Stop()
	return d.answered(j.mark(), a, nested, err)
}

// unclear reports whether a store did not say yes or no.
func unclear(a core.Answer) bool { return a.Outcome == core.Unknown || a.Outcome == core.Undelivered }

// late is the error of a call that reached its limit.
type late struct {
	limit  time.Duration
	option string // that sets it, in brackets; may be empty
	err    error  // what the store made of that; may be nil
}

func lateError(limit time.Duration, err error) error { return &late{limit, " (CallLimit)", err} }

func (e *late) Error() string {
	text := fmt.Sprintf("no answer within %v%s", e.limit, e.option)
	if e.err != nil {
		// That time was over is said.
		if more := strings.TrimSuffix(e.err.Error(), context.DeadlineExceeded.Error()); more != "" {
			text += ": " + strings.TrimSuffix(more, ": ")
		}
	}
	return text
}

func (e *late) Unwrap() error { return e.err }

// answered brings the answer of a store to the machine.
func (d *driver) answered(m mark, a core.Answer, nested []Vote, err error) (next delivery, more bool) {
	clear := well(a.Outcome, err)
	if m.verb != core.Release && m.verb != core.Raise {
		if of := d.set.servers.meet(m.store, a.Server); of >= 0 {
			a.Outcome, a.Clean = core.Twin, false
			text := twinError(d.set.members[m.store].Name(), d.set.members[of].Name()).Error()
			err = &RefusedError{Outcome: OutcomeTwin, Reason: text}
		}
	}
	if d.met != nil {
		d.met(m.store, err, nested)
	}
	return d.step(func(now clock.Instant) {
		if d.health != nil {
			d.health.ended(now, m.store, now.Sub(m.at), clear)
		}
		d.hear(now, m.store, m.verb, err, nested)
		if d.heard != nil && m.verb != core.Release {
			d.heard(m.store, a)
		}
		d.m.Answer(now, m.store, m.seq, a)
	})
}

// ask puts a request to a store. A panic of a store is an unknown outcome.
func (d *driver) ask(ctx context.Context, s Store, r *core.Request) (a core.Answer, nested []Vote, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = panicError(s, p)
			a = core.Answer{Outcome: core.Unknown}
		}
	}()
	switch r.Verb {
	case core.Acquire:
		g, err := s.Acquire(ctx, fromCore(*r))
		if err == nil {
			err = noToken(s, g)
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

// noToken refuses a grant without a token: it may be one, and is no vote to
// count on.
func noToken(s Store, g Grant) error {
	if g.Token < 1 {
		return fmt.Errorf("store %q granted without a token", s.Name())
	}
	return nil
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

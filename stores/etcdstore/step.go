package etcdstore

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// etcd has no clock that a transaction could read, so the step follows the
// clocks of the clients: upward only, since a clock that is behind says nothing
// about the others. Two clients whose clocks differ therefore agree on the
// later one, and do not push each other on.

// stepsAtOnce is how far a client's clock moves the step at once: 56 days. One
// that is further ahead, or a store that rested longer, moves it by one step in
// five minutes of that clock.
const stepsAtOnce = 1 << 14

// stepOf is the step that a clock reads.
func stepOf(now model.Time) int64 { return int64(now) / int64(core.StepPeriod/time.Microsecond) }

// follow moves the step of r after a client's clock.
func follow(r *model.Record, now model.Time) {
	switch ahead := stepOf(now) - r.Step; {
	case r.Standing == model.Missing || ahead > 0 && ahead <= stepsAtOnce:
		r.Step, r.Moved = max(stepOf(now), 0), now
	case ahead > stepsAtOnce && now.Sub(r.Moved) >= core.StepPeriod:
		r.Step, r.Moved = r.Step+1, now
	}
}

// apply runs the model on copies of what was seen. The model is that of a store
// with a clock of its own; what it would do to the step by that clock is left
// to follow.
func apply(rec *model.Record, name *model.Name, req core.Request, now model.Time) core.Answer {
	if req.Verb != core.Release {
		follow(rec, now)
	}
	step, moved := rec.Step, rec.Moved
	rec.Moved = now
	reading := now
	if req.Verb == core.Raise && stepOf(now) > step+stepsAtOnce {
		reading = model.Time((step + 1) * int64(core.StepPeriod/time.Microsecond)) // no clock raises further than it may move
		rec.Moved = reading
	}
	a := model.Apply(rec, name, req, reading)
	switch {
	case rec.Step == step:
		rec.Moved = moved
	case req.Verb == core.Acquire || req.Verb == core.Extend: // a counter outgrew the step
		rec.Step, rec.Moved = max(step, name.Counter>>core.StepBits), now
	}
	return a
}

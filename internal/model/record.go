package model

import (
	"slices"
	"strconv"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// NewRecord is the record of a store that is new by construction, so that
// there is nothing that it could have forgotten: it votes at once.
func NewRecord(member, run string, now Time) Record {
	return Record{Standing: Voting, Member: member, Run: run, Step: max(now.step(), 0), Moved: now}
}

// Restart says that the server began another life and may have lost the last
// of what it acknowledged, or all of it: whatever stands in r, the next request
// of its set puts the store in quarantine.
func (r *Record) Restart(run string) {
	r.Run, r.End = run, 0
	if r.Standing != Missing {
		r.Standing = Doubtful
	}
}

// Quarantine names the quarantine that the store is in by its run and its end,
// and is empty when there is none.
func (r *Record) Quarantine() string {
	if r.Standing != Quarantined {
		return ""
	}
	return r.Run + "@" + strconv.FormatInt(int64(r.End), 10)
}

// Advance moves the step when a period of the store's clock has passed since
// it last moved, or when the clock went back. A step that is ahead of the
// clock's, as after a refill, moves only after the time that counters rest: so
// that it falls back to the clock's, which is all that remains of it when every
// store forgets. Either way a counter that is gone lies below the step, because
// it rested at least that long, whatever the clock does between two calls that
// see it.
func (r *Record) Advance(now Time) {
	since := now.Sub(r.Moved)
	if since >= core.CounterRest || since >= core.StepPeriod && now.step() > r.Step || now < r.Moved {
		r.Step, r.Moved = max(r.Step+1, now.step()), now
	}
}

// settle brings the record up to now for a client of its set. An end further
// off than maxTTL is left from before the clock went back.
func (r *Record) settle(maxTTL time.Duration, now Time) {
	r.Advance(now)
	switch end := now.Add(maxTTL); {
	case r.Standing == Missing, r.Standing == Doubtful:
		r.Lost = r.Lost || r.Standing == Missing
		r.Standing, r.End = Quarantined, end
	case r.Standing == Quarantined:
		r.End = min(r.End, end)
	}
}

// serves reports whether the record stands for the set. One that stands for
// none yet serves nobody and refuses nobody.
func (r *Record) serves(set uint64) bool { return slices.Contains(r.Serves[:r.Serving], set) }

// Admits reports whether a client of the set may speak with the store: it
// serves the set, or none yet.
func (r *Record) Admits(set uint64) bool { return r.Serving == 0 || r.serves(set) }

// enroll makes the set of the first request the one that the store serves.
func (r *Record) enroll(set uint64) {
	if r.Serving == 0 {
		r.Serves[0], r.Serving = set, 1
	}
}

// start is where a name without a counter begins.
func (r *Record) start() int64 { return r.Step << core.StepBits }

// cover moves the step so far that the counter lies within it: a counter that
// outgrew its step could otherwise be dropped while a fresh name starts below.
func (r *Record) cover(counter int64, now Time) {
	if counter >= (r.Step+1)<<core.StepBits {
		r.Step, r.Moved = max(r.Step+1, now.step(), counter>>core.StepBits), now
	}
}

// known is the step that the record remembers, 0 for none.
func (r *Record) known() int64 {
	if r.Lost {
		return 0
	}
	return r.Step
}

func (r *Record) readStep(now Time) core.Answer {
	return core.Answer{
		Outcome: core.Granted,
		Left:    r.left(now),
		Step: core.StepReading{
			Step:       r.known(),
			Base:       r.Base,
			Quarantine: r.Quarantine(),
			Over:       r.Standing == Quarantined && now >= r.End,
		},
	}
}

// left is how long the quarantine lasts at least.
func (r *Record) left(now Time) time.Duration {
	if r.Standing != Quarantined {
		return 0
	}
	return max(r.End.Sub(now), 0)
}

// raise ends a quarantine or begins one. It is bound to the quarantine that
// its sender read: a raise that is late or doubled carries what a quorum knew
// before votes that were given since.
func (r *Record) raise(req *core.Request, now Time) core.Answer {
	o := req.Raise
	in := r.Standing == Quarantined
	switch {
	case o.Quarantine != r.Quarantine() && in:
		return core.Answer{Outcome: core.Quarantined, Left: r.left(now), Reason: "the raise is meant for another quarantine"}
	case o.Quarantine != r.Quarantine():
		return core.Answer{Outcome: core.NotHeld, Reason: "the quarantine that the raise is meant for is over"}
	case o.Forgotten:
		r.Standing, r.End = Quarantined, now.Add(req.MaxTTL)
		return core.Answer{Outcome: core.Granted}
	case o.Fresh:
		r.Standing, r.End, r.Lost = Voting, 0, false
		return core.Answer{Outcome: core.Granted}
	case in && now < r.End:
		return core.Answer{Outcome: core.Quarantined, Left: r.left(now), Reason: "the quarantine's time is not over"}
	}
	if limit := core.TokenLimit >> core.StepBits; o.Step < 0 || o.Step >= limit-1 || now.step() >= limit-1 {
		return invalid("a raise to step " + strconv.FormatInt(max(o.Step, now.step())+1, 10) + " would use up the tokens")
	}
	base := (max(o.Step, r.Step, now.step()) + 1) << core.StepBits
	if o.Alone {
		// Not the clock's next step: a store that lost everything three times
		// within one step would give the same tokens three times.
		base = max(now.mark(), (max(o.Step, r.known())+1)<<core.StepBits)
	}
	r.Base = base // above the one before, which lies within the step
	r.Standing, r.End, r.Lost = Voting, 0, false
	r.Step, r.Moved = max(r.Step, r.Base>>core.StepBits), now
	return core.Answer{Outcome: core.Granted}
}

// mark is t in step periods, with StepBits of fraction.
func (t Time) mark() int64 {
	const period = int64(core.StepPeriod / time.Microsecond)
	whole, part := int64(t)/period, int64(t)%period
	return whole<<core.StepBits + part<<core.StepBits/period
}

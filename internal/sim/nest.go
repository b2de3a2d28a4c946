package sim

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// verb is one call to a composite: an inner round over the stores of a zone, as
// the library drives it when a combined store is called as a store.
type verb struct {
	driver
	q       *core.Quorum
	outer   *driver
	lease   *Lease
	zone    int
	seq     uint32
	req     core.Request
	over    bool // the caller has its answer
	stopped bool // nothing leaves any more
}

// firstOf is the first store of the zone that a store is in.
func (w *World) firstOf(store int) int {
	if w.zone == nil {
		return 0
	}
	return store - store%w.zone.N()
}

// enter prepares a call to a composite.
func (w *World) enter(d *driver, call *core.Call) *verb {
	n := w.zone.N()
	cfg := core.Config{
		Rule: w.zone, Ask: core.RankingOf(askOrder(d.lease.key, n)...), Request: call.Req, Member: w.cfg.Mutant != InnerRollsBack, Bugs: w.cfg.Bugs,
		Within: call.Req.Limit, CallLimit: min(call.Req.Limit/time.Duration(n+1), time.Second), ReleaseLimit: call.Req.Limit,
	}
	if w.cfg.Doubles {
		cfg.Doubles = core.Full(n)
	}
	v := &verb{q: core.NewQuorum(cfg), outer: d, lease: d.lease, zone: call.Store, seq: call.Seq, req: call.Req}
	v.driver = driver{c: d.c, m: v.q, verb: v, base: call.Store * n, timer: never, health: &d.c.health[1+call.Store]}
	return v
}

func (v *verb) begin() {
	now, r := v.c.Now(), &v.req
	switch r.Verb {
	case core.Acquire:
		v.learn(now)
		v.q.BeginAs(now, r.Owner.Attempt, r.Floor)
	case core.Extend:
		v.q.ExtendAs(now, r.Owner.Attempt, r.Floor, r.TTL)
	default:
		v.q.ReleaseAs(now, r.Owner.Attempt)
	}
	v.settle()
}

// settled answers the caller once the round is decided. The answer comes as an
// event of its own, as that of any call.
func (v *verb) settled() {
	if v.over || v.stopped {
		return
	}
	a, decided := v.answer()
	if !decided {
		return
	}
	v.over = true
	v.stopped = a.Outcome != core.Granted || v.req.Verb == core.Release
	v.c.After(0, func() {
		if !v.lease.dead && v.outer.land(v.zone, v.seq, a.Outcome) {
			v.outer.answered(v.zone, v.seq, v.req.Verb == core.Acquire && v.req.Kind != core.Convert, a)
		}
	})
}

// answer is what the members' answers amount to.
func (v *verb) answer() (a core.Answer, decided bool) {
	a.Outcome = core.Unknown
	switch v.req.Verb {
	case core.Acquire:
		switch v.q.Phase() {
		case core.Asking:
			return a, false
		case core.Held:
			return v.grant(v.q.Token()), true
		}
		switch {
		case v.q.Failure() == core.ByHeld:
			a.Outcome = core.Contended
		case v.sees(core.Quarantined):
			a.Outcome = core.Quarantined
		}
		return a, true
	case core.Extend:
		active, won := v.q.Extending()
		switch {
		case won:
			return v.grant(v.req.Floor), true
		case v.q.Phase() == core.Lost:
			a.Outcome = core.NotHeld
		}
		return a, !active
	}
	answered, heard, _ := v.q.Releases()
	if answered == core.Full(v.c.w.zone.N()) {
		a.Outcome, a.Clean = core.NotHeld, true
		if v.sees(core.Granted) {
			a = core.Answer{Outcome: core.Granted}
		}
		return a, heard
	}
	a.Enough = v.c.w.zone.Met(answered)
	return a, heard
}

func (v *verb) grant(token int64) core.Answer {
	return core.Answer{Outcome: core.Granted, Mode: v.req.Mode, Token: token, TTL: v.req.TTL}
}

func (v *verb) sees(o core.Outcome) bool {
	for i := range v.c.w.zone.N() {
		if v.q.View(i).Outcome == o {
			return true
		}
	}
	return false
}

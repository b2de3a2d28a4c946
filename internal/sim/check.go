package sim

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Checker is one thing that must never be.
type Checker uint8

// The checkers. Exclusion and Sharing are claim 2 and hold while clocks keep
// their bound; Order and Unique are claim 1 and hold whatever the clocks do.
const (
	Exclusion  Checker = iota // two exclusive holders believe at once
	Sharing                   // a reader and a writer believe at once
	Order                     // a token is not above that of a lease that was held before its acquisition began
	Unique                    // two exclusive leases have one token
	Fence                     // a resource that checks tokens took a write of an earlier holder
	Remaining                 // a client believes for longer than TTL, since the request left, less drift
	LeftBehind                // something is left in a store of an owner that is done with it
	Stray                     // a held lease has a vote above its token, and no call under way that would end it
	AfterEnd                  // a lease that is over, or a closed locker, does something by itself
	Messages                  // more messages than an acquisition may cost, or two calls to a store at once
	Progress                  // all is calm, and yet somebody does not get in, or a store does not vote
	Starved                   // somebody waits for longer than the world allows
	checkers
)

var checkerNames = [checkers]string{
	"exclusion", "sharing", "order", "unique", "fence", "remaining", "left behind", "stray vote", "after the end", "messages", "progress", "starved",
}

func (c Checker) String() string { return checkerNames[c] }

// Violation is what a checker saw.
type Violation struct {
	Checker Checker
	At      time.Duration
	Key     int // -1 for none
	Text    string
}

func (v Violation) String() string { return v.At.String() + " " + v.Checker.String() + ": " + v.Text }

// name is what the world knows of a key: the truth, which no client knows.
type name struct {
	text    string
	ask     []int
	tokens  map[int64]int // exclusive ones, and whose
	any     int64         // highest token held so far
	written int64         // and of the exclusive ones
	holders []*Lease      // who believes, or did a moment ago
	fence   int64         // the highest token that the resource saw
	fenced  time.Duration // when the youngest acquisition began whose write it took
	open    time.Duration // the same of the resource that looks at no token
}

// believing compares what the client believes with the truth.
func (l *Lease) believing() {
	until := l.m.Until()
	if until == l.believe {
		return
	}
	w := l.c.w
	grew, before := until > l.believe, l.believe
	l.believe = until
	if until == -core.Never {
		l.stopBelieving()
		return
	}
	if grew && before > 0 && before <= l.c.Now() {
		w.violate(AfterEnd, l.key, "lease %d of client %d was over, and is held again", l.serial, l.c.id)
	}
	l.until = l.c.clock.due(until)
	l.token = l.m.Quorum().Token()
	if l.acquired == never {
		l.acquired = w.now
	}
	k := w.keys[l.key]
	if !l.believes {
		l.believes = true
		k.holders = append(k.holders, l)
	}
	if grew {
		l.founded = l.from
		l.checkRemaining(until)
		w.checkAlone(k, l)
	}
}

func (l *Lease) stopBelieving() {
	if !l.believes {
		return
	}
	l.believes = false
	k := l.c.w.keys[l.key]
	k.holders = slices.DeleteFunc(k.holders, func(o *Lease) bool { return o == l })
}

// checkAlone is claim 2.
func (w *World) checkAlone(k *name, l *Lease) {
	if !w.exclusion || l.until <= w.now {
		return
	}
	for _, o := range k.holders {
		if o == l || o.until <= w.now || o.excused() || l.excused() {
			continue
		}
		switch {
		case o.mode == core.Exclusive && l.mode == core.Exclusive:
			w.violate(Exclusion, l.key, "lease %d of client %d and lease %d of client %d both hold %s: until %v and %v",
				o.serial, o.c.id, l.serial, l.c.id, k.text, o.until, l.until)
		case o.mode == core.Exclusive || l.mode == core.Exclusive:
			w.violate(Sharing, l.key, "lease %d of client %d (%v) and lease %d of client %d (%v) both hold %s",
				o.serial, o.c.id, o.mode, l.serial, l.c.id, l.mode, k.text)
		}
	}
}

// checkRemaining is invariant I7, from what was seen to leave.
func (l *Lease) checkRemaining(until clock.Instant) {
	w := l.c.w
	allowed := l.askedFrom.Add(l.ttl - w.drift(l.ttl))
	if l.extended > 0 {
		allowed = max(allowed, l.extended.Add(l.extendTTL-w.drift(l.extendTTL)))
	}
	if until > allowed {
		w.violate(Remaining, l.key, "lease %d of client %d believes for %v too long", l.serial, l.c.id, until.Sub(allowed))
	}
}

func (w *World) drift(ttl time.Duration) time.Duration {
	return ttl/million*time.Duration(w.cfg.DriftPPM) + w.cfg.DriftFixed
}

// checkToken is claim 1, when a lease has just been acquired.
func (w *World) checkToken(l *Lease) {
	k := w.keys[l.key]
	above := l.aboveWrite
	if l.mode == core.Exclusive {
		above = l.aboveAny
		if other, taken := k.tokens[l.token]; taken && w.order {
			w.violate(Unique, l.key, "leases %d and %d have the token %s", other, l.serial, Token(l.token))
		}
		k.tokens[l.token] = l.serial
		k.written = max(k.written, l.token)
	}
	if l.token <= above && w.order {
		w.violate(Order, l.key, "lease %d of client %d has token %s; %s was held before it was asked for", l.serial, l.c.id, Token(l.token), Token(above))
	}
	k.any = max(k.any, l.token)
}

// sends looks at every request of a lease before it leaves.
func (l *Lease) sends(now clock.Instant, call *core.Call) {
	w := l.c.w
	r := &call.Req
	if r.Wait == core.WaitQueue {
		l.polls++
	} else {
		l.calls++
	}
	// What an event sends may leave before the event has ended the lease, so
	// the stage before it counts as well.
	stage, before := l.m.Stage(), l.stage
	switch {
	case l.c.closed && !l.releasing:
		w.violate(AfterEnd, l.key, "client %d sends %v to %s after its locker was closed", l.c.id, r.Verb, StoreName(call.Store))
	case l.byItself(stage, before, call):
		w.violate(AfterEnd, l.key, "lease %d is lost, and sends %v to %s by itself", l.serial, r.Verb, StoreName(call.Store))
	case r.Verb != core.Release && !mayAsk(stage) && !mayAsk(before) && !(r.Wait == core.WaitQueue && (stage == core.Waiting || before == core.Waiting)):
		w.violate(AfterEnd, l.key, "lease %d is %s, and sends %v/%v to %s", l.serial, stageNames[stage], r.Verb, r.Kind, StoreName(call.Store))
	}
	for i := range l.flights {
		if l.flights[i].store == call.Store {
			w.violate(Messages, l.key, "lease %d has two calls to %s at once", l.serial, StoreName(call.Store))
		}
	}
	switch {
	case r.Verb == core.Acquire && (r.Kind == core.New || r.Kind == core.Force) && r.Wait != core.WaitQueue && l.begins(r, before, stage) && l.askedFrom != now:
		l.attempt, l.askedFrom, l.from = l.m.Quorum().Attempt(), now, w.now
		w.report.Attempts++
	case (r.Verb == core.Extend && !l.m.Quorum().Promoting() || r.Kind == core.Convert) && stage == core.Holding && l.extended != now:
		l.extended, l.extendTTL, l.from = now, r.TTL, w.now
		l.rounds++
	}
}

// byItself reports whether a lost lease sends something that nobody asked for.
// What it owes from before, to take back an earlier attempt or a grant that
// came too late to count, it still sends.
func (l *Lease) byItself(stage, before core.Stage, call *core.Call) bool {
	lost := stage == core.Gone && before == core.Gone && !l.releasing && !l.c.closing
	return lost && call.Req.Owner.Attempt == l.m.Quorum().Attempt() && !l.above.Has(call.Store)
}

func mayAsk(s core.Stage) bool { return s == core.Trying || s == core.Holding }

// checkLeft looks into the stores when a lease says that it is done: by its own
// word nothing of it is there any more.
func (w *World) checkLeft(l *Lease) {
	n := w.cfg.Stores
	if most := int(l.m.Quorum().Attempt()+1)*n*(n+17) + (l.rounds+1)*3*n; l.calls > most {
		w.violate(Messages, l.key, "lease %d took %d messages in %d attempts: at most %d", l.serial, l.calls, l.m.Quorum().Attempt(), most)
	}
	w.checkPolls(l)
	if !l.clean || w.cfg.Unsteady {
		return // where clocks jump, a tombstone may be over too soon
	}
	for i := range w.nodes {
		node := &w.nodes[i]
		if node.lost >= l.began || l.orphans.Has(i) {
			continue // it went back to before the release; or it is a matter of one TTL
		}
		if v := l.vote(node); v != nil && v.Until > node.time(w.now) {
			w.violate(LeftBehind, l.key, "lease %d is done, and has a vote in store %s", l.serial, StoreName(i))
		}
		if l.stands(node) {
			w.violate(LeftBehind, l.key, "lease %d is done, and stands in line in store %s", l.serial, StoreName(i))
		}
	}
}

// checkStray looks into the stores when a lease is given back: a late grant
// above its token that it heard of must be gone by then.
func (w *World) checkStray(l *Lease) {
	if _, _, quiet := l.m.Quorum().Releases(); !quiet || l.m.Stage() != core.Holding || len(l.flights) > 0 || w.zone != nil || w.cfg.Unsteady || w.cfg.Doubles || l.of.Members != nil {
		return
	}
	l.above &^= l.m.Quorum().Leftovers()
	for i := range w.nodes {
		node := &w.nodes[i]
		if node.lost >= l.began || !l.above.Has(i) || l.orphans.Has(i) {
			continue
		}
		if v := l.vote(node); v != nil && v.Token > l.token && v.Until > node.time(w.now) {
			w.violate(Stray, l.key, "lease %d has token %s, and a vote with %s in store %s",
				l.serial, Token(l.token), Token(v.Token), StoreName(i))
		}
	}
}

// vote returns the vote of any attempt of the lease that a store keeps, or nil.
func (l *Lease) vote(n *node) *model.Vote {
	kept := n.store.Look(l.c.w.keys[l.key].text)
	if kept == nil {
		return nil
	}
	for i := range kept.Votes {
		if v := &kept.Votes[i]; v.Owner.ID == l.id {
			return v
		}
	}
	return nil
}

// granted looks at a vote that a store gave for a lease: one that is done must
// not come to life by a late request. A tombstone lasts MaxTTL; what was on its
// way for longer is an orphan for one TTL, which costs time and never safety.
func (w *World) granted(l *Lease, store int, sent time.Duration) {
	switch {
	case w.late(sent):
		l.orphans = l.orphans.With(store)
	case l.dead || !l.over || !l.clean || w.cfg.Unsteady || w.nodes[store].lost >= l.began:
	default:
		w.violate(LeftBehind, l.key, "lease %d is done, and store %s gave it a vote", l.serial, StoreName(store))
	}
}

// finish looks at what is left once all is over.
func (w *World) finish() {
	w.report.Elapsed, w.report.Hash = w.now, w.hash
	if w.cfg.Open || len(w.report.Violations) > 0 || !w.ended {
		w.report.Hash = w.hash
		return
	}
	if !w.settled() {
		w.violate(Progress, -1, "%v after the last fault: %s", w.now-w.cfg.Duration, w.unsettled())
		w.report.Hash = w.hash
		return
	}
	w.now += 2*w.cfg.MaxTTL + 2*w.cfg.MaxTTL/10
	for i := range w.nodes {
		n := &w.nodes[i]
		if !w.serving(i) {
			continue // nobody asks it any more
		}
		// Where sets change, the operator's last look may be the first to find that
		// a store forgot, when the clients have closed.
		if n.store.Record.Quarantine() != "" && w.cfg.Latest == nil {
			w.violate(Progress, -1, "store %s does not vote", StoreName(i))
		}
		for key, k := range w.keys {
			kept := n.store.Peek(k.text)
			if left := kept.Live(&n.store.Record, w.cfg.MaxTTL, n.time(w.now)); len(left) > 0 {
				w.violate(LeftBehind, key, "%d votes are in store %s long after the end", len(left), StoreName(i))
			}
		}
	}
	w.report.Hash = w.hash
}

package quorum

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// tells reports whether a function of the user's hears what happens to the lease.
func (l *Lease) tells() bool { return l.set.observe != nil || l.set.rival != nil }

// settled takes the machine's notices, under d.mu, and returns what to do once
// it is free.
func (l *Lease) settled(now clock.Instant) func() {
	var room [4]core.Notice
	return l.hear(now, l.m.AppendNotices(room[:0]))
}

func (l *Lease) hear(now clock.Instant, notices []core.Notice) func() {
	var then func() // of the lease that carries this one on
	if l.cause == nil {
		l.until.Store(int64(l.m.Until())) // before whoever extended it is told, and looks
	}
	for i := 0; i < len(notices); i++ {
		n := notices[i]
		if n.Kind == core.NoticeChanged && l.promotes(n) {
			then = l.handOn(now, n.Serial, notices[i+1:])
			break
		}
		l.take(now, n)
		notices = l.m.AppendNotices(notices) // with what that gave rise to
	}
	if l.cause == nil {
		l.until.Store(int64(l.m.Until()))
		l.mode = Mode(l.m.Mode())
	} else {
		l.until.Store(int64(-core.Never))
	}
	quiet := then == nil && l.m.Quiet()
	if len(notices) == 0 && !quiet {
		return nil
	}
	if stage := l.m.Stage(); l.listens && stage > core.Holding {
		l.listens = false
		l.locker.hub.unlisten(l)
	}
	if quiet {
		l.tellLeftovers()
	}
	cause, ctx, after, freed := l.cause, l.ctx, l.after, l.freed
	l.after, l.freed = nil, false
	return func() {
		if cause != nil {
			ctx.end(cause)
		}
		if after != nil {
			after()
		}
		if freed {
			l.locker.hub.freed(l.Key())
		}
		if quiet {
			l.d.mu.Lock()
			if l.m.Quiet() {
				l.locker.forget(l)
			}
			l.d.mu.Unlock()
		}
		if then != nil {
			then()
		}
	}
}

// take turns one notice into its consequence.
func (l *Lease) take(now clock.Instant, n core.Notice) {
	q := l.m.Quorum()
	switch n.Kind {
	case core.NoticeAcquired:
		l.admitted()
		l.taking.won, l.token = true, q.Token()
		l.tell(Event{Kind: EventAcquired, Took: now.Sub(l.started)})
		l.started = now
		close(l.taking.decided)
	case core.NoticeAttempt:
		l.admitted()
		l.refused(now, n.Failure)
		l.tellRival(now)
	case core.NoticeWatch:
		l.listen(true)
	case core.NoticeFailed:
		l.admitted()
		l.cause = l.why(now, n)
		l.taking.failure = l.cause
		l.tell(Event{Kind: EventFailed, Took: now.Sub(l.started), Err: l.cause})
		close(l.taking.decided)
	case core.NoticeStill:
		l.tellWaiting(now, n)
	case core.NoticeRenewed:
		l.tell(Event{Kind: EventRenewed})
	case core.NoticeRenewFailed:
		l.tell(Event{Kind: EventRenewFailed, Err: l.opError("extend", ErrNoQuorum), Left: q.Until().Sub(now)})
	case core.NoticeExpiring:
		l.tell(Event{Kind: EventExpiring, Left: q.Until().Sub(now)})
	case core.NoticeExtended:
		l.answer(n, func() error { return l.opError("extend", ErrNoQuorum) })
	case core.NoticeChanged:
		l.changed(n)
	case core.NoticeLost:
		lost := l.lost(LossReason(n.Reason))
		if l.cause == nil {
			l.cause = lost
		}
		l.tell(Event{Kind: EventLost, Took: now.Sub(l.started), Err: lost, Label: lost.By})
	case core.NoticeKept:
		l.answerRelease(l.afterLoss())
	case core.NoticeReleased:
		l.released(now, n.OK)
	}
}

// refused hears that an attempt failed. From now on its wait is worth a watch;
// and whoever is not the first in line leaves the asking to the one who is.
func (l *Lease) refused(now clock.Instant, why core.Failure) {
	if l.inLine() {
		first, also := l.locker.hub.refused(l, why)
		if !first && !l.set.failOnOutage {
			l.m.Park(now)
		}
		for _, o := range also {
			l.later(o.admit)
		}
	}
	l.listen(false)
}

// inLine reports whether the lease, while it waits, stands in its key's line of
// this process. Who takes by force passes it.
func (l *Lease) inLine() bool { return l.set.wait != 0 && l.set.kind != KindForce }

func (l *Lease) listen(holds bool) {
	l.listens = true
	l.locker.hub.listen(l, holds)
}

// answer tells who waits for the end of an extension or a change of mode.
func (l *Lease) answer(n core.Notice, failed func() error) {
	wait := l.asked[n.Serial].answer
	delete(l.asked, n.Serial)
	switch {
	case wait == nil:
	case n.OK:
		wait <- nil
	case l.cause != nil:
		wait <- l.cause
	case l.m.Stage() == core.Gone:
		// The machine tells extensions before the loss itself.
		wait <- l.lost(LossReason(l.m.Reason()))
	default:
		wait <- failed()
	}
}

// answerRelease tells who waits for a release, unless MinHold kept it back: then
// that was told before.
func (l *Lease) answerRelease(err error) {
	if l.release == nil {
		l.release = &release{done: make(chan struct{})} // the locker closed it
	}
	l.left()
	select {
	case <-l.release.done:
	default:
		l.release.err = err
		close(l.release.done)
	}
}

// afterLoss is what a release of a lost lease returns, and nil for any other.
func (l *Lease) afterLoss() error {
	if lost, ok := l.cause.(*LostError); ok { // never wrapped
		return lost
	}
	return nil
}

// lost says why the lease is over. By whose force, its own votes tell.
func (l *Lease) lost(why LossReason) *LostError {
	e := &LostError{Key: l.Key(), Token: l.token, Reason: why}
	for i := range l.d.set.members {
		err := l.d.reply(i).err
		if refused := (*RefusedError)(nil); why == LostForced && refusedAs(err, &refused) && refused.Forced {
			e.By = refused.Label
		}
	}
	return e
}

func (l *Lease) released(now clock.Instant, ok bool) {
	err := l.afterLoss()
	if !ok {
		err = errors.Join(err, l.opError("release", ErrNoQuorum))
	}
	l.tell(Event{Kind: EventReleased, Took: now.Sub(l.started), Err: err})
	l.answerRelease(err)
	l.freed = true
}

// why is the error of an Acquire that failed.
func (l *Lease) why(now clock.Instant, n core.Notice) error {
	e := l.opError(l.set.op, ErrNoQuorum)
	switch l.failure(n) {
	case core.ByHeld:
		if e.reasons[0] = ErrHeld; l.m.Quorum().Phase() == core.Lost {
			e.reasons[0] = ErrNotHeld // what was to be resumed
		}
	case core.ByMismatch:
		e.reasons[0] = ErrMismatch
	case core.ByExpired:
		e.reasons[0] = ErrExpired
	}
	for i := range e.Votes {
		if v := &e.Votes[i]; v.Err == errPending && n.End == core.EndDecided && n.Failure != core.ByExpired {
			v.Err = errNoNeed
		}
	}
	switch n.End {
	case core.EndWait:
		e.reasons = append(e.reasons, fmt.Errorf("gave up after waiting %v: %w", l.set.wait, context.DeadlineExceeded))
	case core.EndCancelled:
		e.reasons = append(e.reasons, l.taking.ended)
	case core.EndClosed:
		e.reasons = []error{ErrClosed}
	}
	e.Took, e.Tries = now.Sub(l.started), int(l.m.Quorum().Attempt())
	return e
}

// failure is why attempts failed so far. One that never asked has whoever does in
// its place for a witness.
func (l *Lease) failure(n core.Notice) core.Failure {
	if n.Failure == core.NoFailure && l.locker.hub.outlookOf(l.Key()) == core.ByHeld {
		return core.ByHeld
	}
	return n.Failure
}

func (l *Lease) opError(op string, sentinel error) *OpError {
	return &OpError{
		Op: op, Key: l.Key(), Need: l.d.set.rule.Need(), Votes: l.d.votes(l.m.Quorum().View), reasons: []error{sentinel},
	}
}

func (l *Lease) tellWaiting(now clock.Instant, n core.Notice) {
	e := Event{Kind: EventWaiting, Took: now.Sub(l.started), Err: ErrNoQuorum}
	if l.failure(n) == core.ByHeld {
		e.Err = ErrHeld
	}
	e.Label, e.Left = l.holder(now)
	l.tell(e)
}

// holder says who has the name, as far as the stores last told, and how much is
// left of the time that they told then: who waits in line asks seldom.
func (l *Lease) holder(now clock.Instant) (label string, left time.Duration) {
	for i := range l.d.set.members {
		r := l.d.reply(i)
		if refused := (*RefusedError)(nil); refusedAs(r.err, &refused) && refused.Outcome == OutcomeContended {
			label, left = refused.Label, max(refused.Left-now.Sub(r.at), 0)
		}
	}
	return label, left
}

// tellRival lets a candidate know who leads.
func (l *Lease) tellRival(now clock.Instant) {
	if rival := l.set.rival; rival != nil {
		label, _ := l.holder(now)
		l.later(func() { rival(label) })
	}
}

// tellLeftovers names the stores that were given up on.
func (l *Lease) tellLeftovers() {
	left := l.m.Quorum().Leftovers()
	for i, m := range l.d.set.members {
		if left.Has(i) && !l.gone.Has(i) {
			l.tell(Event{Kind: EventReleaseFail, Store: m.Name(), Err: l.d.reply(i).undone})
		}
	}
	l.gone = left
}

// later puts something off until mu is free, behind what was put off before.
// The caller holds d.mu.
func (l *Lease) later(f func()) {
	if before := l.after; before != nil {
		l.after = func() { before(); f() }
		return
	}
	l.after = f
}

// tell keeps an event until mu is free. Without an observer it costs nothing.
func (l *Lease) tell(e Event) {
	if l.set.observe == nil {
		return
	}
	e.Key, e.Token = l.Key(), l.token
	switch e.Kind {
	case EventAcquired, EventFailed, EventRenewFailed, EventWaiting:
		e.Votes = l.d.votes(l.m.Quorum().View)
	}
	l.later(func() { l.set.observe(e) })
}

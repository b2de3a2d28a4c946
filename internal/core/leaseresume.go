package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// Resume takes a lease over that another machine left: every store is asked to
// extend exactly its owner with its token, as in a renewal. It is held when a
// quorum has; what the machine before it believed does not count.
func (l *Lease) Resume(now clock.Instant, attempt uint32, token int64) {
	if l.stage != Waiting {
		return
	}
	l.stage = Resuming
	l.q.Resume(now, attempt, token, l.cfg.Request.TTL)
	l.settle(now)
}

func (l *Lease) settleResume(now clock.Instant) {
	active, won := l.q.Extending()
	switch {
	case won:
		l.inRound, l.wonSaid, l.roundAt = active, true, l.q.round.start
		l.hold(now, l.roundAt)
	case l.q.Phase() == Lost:
		l.notResumed(EndDecided, ByHeld)
	case !active:
		l.notResumed(EndDecided, ByNoQuorum)
	}
}

// notResumed ends a lease that could not be taken over. It sends nothing: it is
// not known whose it is.
func (l *Lease) notResumed(why End, failure Failure) {
	l.stage, l.end, l.last = Ended, why, failure
	l.q.Lose()
	l.tell(Notice{Kind: NoticeFailed, Failure: failure, End: why})
}

// Leave ends a held lease here and tells no store, so that another machine can
// resume it.
func (l *Lease) Leave(now clock.Instant) {
	l.expire(now)
	if l.stage == Holding {
		l.stage, l.inRound = Returned, false
		l.q.Lose()
		l.dropWishes()
	}
	l.settle(now)
}

// Changing reports whether a change of mode is under way, so that the stores
// may know several attempts.
func (l *Lease) Changing() bool { return l.asked != nil && len(l.asked.changes) > 0 }

// Resume starts a round of an owner that asked these stores before, in another
// life. Nothing is believed until it has won, and what that life sent may still
// arrive.
func (q *Quorum) Resume(now clock.Instant, attempt uint32, token int64, ttl time.Duration) {
	for i := range q.slots {
		q.slots[i].linger = true
	}
	q.ExtendAs(now, attempt, token, ttl)
	q.until = now
}

package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

const (
	// watchAfter is how long a lock is held before its holder watches it: most
	// are given back sooner, and a watch costs each store a subscription.
	watchAfter = time.Second
	// wakeRest is the least time between two rounds of renewal that wakes
	// start, so that rivals who take and give back a store cannot drive a holder.
	wakeRest = time.Second
)

// wait is what a Lease knows of its Acquire; nil once it is held.
type wait struct {
	line    *waiting      // nil before it stands in line
	giveUp  clock.Instant // end of Wait
	retryAt clock.Instant
	stillAt clock.Instant
	endBy   clock.Instant // of the moment that the roll-back has
	counter int64         // highest seen when the name last changed hands
	calm    uint32        // attempts since then
	races   uint32        // attempts that a wake began and that failed
	last    Failure       // of the last attempt that was decided
	end     End
	started bool
	once    bool // a single attempt
	missed  bool // a wake came during the attempt under way
	racing  bool // a wake brings the next attempt, or began this one
}

// begin starts the clocks of the wait, once.
func (l *Lease) begin(now clock.Instant) {
	if l.started {
		return
	}
	l.started, l.retryAt = true, Never
	l.stillAt = now.Add(stillFirst)
	if l.cfg.Wait >= 0 {
		l.giveUp = now.Add(l.cfg.Wait)
	}
	if l.cfg.Wait == 0 {
		l.once, l.giveUp = true, Never // one attempt, however long it takes
	}
}

// Park begins a wait without asking, or goes on with one, until Admit: somebody
// nearer asks, whose answer is as good. The limit of the wait runs on.
func (l *Lease) Park(now clock.Instant) {
	if l.stage != Waiting {
		return
	}
	l.begin(now)
	l.retryAt = Never
	l.settle(now)
}

// StartParked begins a wait parked, unless Admit came first: who was admitted
// asks for all who stand behind.
func (l *Lease) StartParked(now clock.Instant) {
	if l.stage == Waiting && !l.started {
		l.Park(now)
	}
}

// Admit ends parking: the lease asks now. One that is not parked, or stands in
// the stores' queues, is left as it is.
func (l *Lease) Admit(now clock.Instant) {
	if l.stage != Waiting {
		return
	}
	if l.begin(now); l.retryAt == Never && !l.inLine() {
		l.retryAt = now
	}
	l.settle(now)
}

// Woken takes what a store told about the name.
func (l *Lease) Woken(now clock.Instant, store int, w Wake) {
	l.expire(now)
	switch {
	case w.Kind != WakeChanged:
		switch w.Kind {
		case WakeStarted:
			l.hears = l.hears.With(store)
		case WakeEnded:
			l.hears = l.hears.Without(store)
		}
		l.wokenInLine(now, store, w)
	case l.inLine():
		l.movedUp(now, store)
	default:
		switch l.stage {
		case Waiting:
			l.hasten(now)
		case Trying:
			l.missed = true // the denial that may come is older news
		case Holding:
			if l.cfg.RenewEvery > 0 {
				l.renewAt = min(l.renewAt, max(now, l.roundAt.Add(wakeRest)))
			}
		}
	}
	l.settle(now)
}

// hasten brings the next attempt near because of a wake. The first who are
// woken act at once; whoever then loses the race spreads out, so that of many
// that are woken by one release few ask at a time. One that stands parked is
// woken by Admit alone.
func (l *Lease) hasten(now clock.Instant) {
	if l.retryAt == Never {
		return
	}
	var delay time.Duration
	if l.races > 0 {
		delay = l.pause(min(l.races, calmAfterMove))
	}
	if at := now.Add(delay); at < l.retryAt {
		l.retryAt, l.racing = at, true
	}
}

// lateNews looks, when an attempt has failed, whether a wake began it or came
// meanwhile.
func (l *Lease) lateNews(now clock.Instant) {
	if l.racing {
		l.races++
	}
	l.racing = false
	if l.missed {
		l.missed = false
		l.hasten(now)
	}
}

func (l *Lease) settleWait(now clock.Instant) {
	switch {
	case now >= l.giveUp:
		l.finish(now, EndWait)
	case l.inLine():
		l.saySo(now)
		l.settleLine(now)
	case now >= l.retryAt:
		l.try(now)
		l.saySo(now)
	default:
		l.saySo(now)
	}
}

// saySo tells once in a while that the wait goes on.
func (l *Lease) saySo(now clock.Instant) {
	if now >= l.stillAt {
		l.stillAt = now.Add(stillAgain)
		l.tell(Notice{Kind: NoticeStill, Failure: l.last})
	}
}

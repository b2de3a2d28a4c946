package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// LeaseConfig is what a Lease is told once.
type LeaseConfig struct {
	Config
	Once         bool          // a single attempt
	FailOnOutage bool          // do not wait for stores to come back
	Wait         time.Duration // how long to keep trying; negative is without end
	RenewEvery   time.Duration // 0 is never
	RenewGrain   time.Duration // renewals fall on multiples of it, rather early than late, and so together; 0 is none
	BackoffMin   time.Duration
	BackoffMax   time.Duration
	Watch        bool          // some store tells what happens to the name
	Expiring     time.Duration // warn this long before the end; 0 is never
	MaxHold      time.Duration // 0 is without end
	MinHold      time.Duration // a release is kept back until then; at most the TTL
	Seed         uint64        // of the jitter
}

// Stage is where a Lease stands.
type Stage uint8

// The stages.
const (
	Waiting  Stage = iota // between attempts
	Trying                // an attempt is under way
	Holding               // the caller may believe that it holds the lock
	Ending                // it failed, and the roll-back is given a moment to answer
	Ended                 // it failed
	Gone                  // it was held, and was lost
	Returned              // it was held, and was released
	Resuming              // the stores are asked whether a lease of before still stands
)

// End says what ended the wait of an Acquire, beside the stores' answers.
type End uint8

// The ends.
const (
	EndDecided   End = iota // the attempt's failure speaks for itself
	EndCancelled            // the caller's context
	EndWait                 // the Wait limit
	EndClosed               // the locker was closed
)

// Reason says why a lease was lost.
type Reason uint8

// The reasons.
const (
	NotLost Reason = iota
	LostExpired
	LostTakenOver
	LostQuorum
	LostMaxHold
	LostForced
	LostClosed
)

// NoticeKind says what a Notice tells.
type NoticeKind uint8

// The notices.
const (
	NoticeAcquired    NoticeKind = iota
	NoticeAttempt                // an attempt failed, and another will follow
	NoticeFailed                 // the Acquire failed: Failure, End
	NoticeStill                  // it has been waiting for a while: Failure
	NoticeRenewed                // a round won
	NoticeRenewFailed            // a round did not
	NoticeExtended               // an explicit extension ended: Serial, OK; not OK is too few stores
	NoticeChanged                // a change of mode ended: Serial, OK, Failure
	NoticeExpiring
	NoticeKept     // a release is kept back until MinHold is over
	NoticeLost     // Reason
	NoticeReleased // every store has answered or failed once: OK when a quorum answered
	NoticeWatch    // held for so long that a watch is worth its price
)

// Notice is something the driver has to tell.
type Notice struct {
	Kind    NoticeKind
	Failure Failure
	End     End
	Reason  Reason
	Serial  uint32
	OK      bool
}

// How long a failed Acquire waits for its roll-back to be answered, and when a
// waiting one says so, first and again.
const (
	undoGrace  = 50 * time.Millisecond
	stillFirst = 2 * time.Second
	stillAgain = 10 * time.Second
)

// Lease is one lock over its life: acquired with retries, renewed, and lost or
// released.
type Lease struct {
	cfg *LeaseConfig // never changed, since others may share it
	q   Quorum
	*wait
	rng    uint64
	hears  Set    // stores whose watch stands
	misses uint32 // rounds that failed since the last that won

	renewAt   clock.Instant
	maxAt     clock.Instant
	minAt     clock.Instant
	roundAt   clock.Instant
	watchAt   clock.Instant // when NoticeWatch is due
	asked     *requests     // nil before the first
	stage     Stage
	reason    Reason
	inRound   bool
	wonSaid   bool
	warned    bool
	deferred  bool // a renewal waits for its turn
	returning bool // a release was not yet told
	keptBack  bool // a release waits for minAt
}

// Stage returns where the lease stands.
func (l *Lease) Stage() Stage { return l.stage }

// Reason returns why the lease was lost.
func (l *Lease) Reason() Reason { return l.reason }

// Quorum returns the machine beneath, to be read only.
func (l *Lease) Quorum() *Quorum { return &l.q }

// Calls returns what to send now, and forgets it.
func (l *Lease) Calls() []Call { return l.q.Calls() }

// Notices returns what there is to tell, and forgets it.
func (l *Lease) Notices() []Notice { return l.AppendNotices(nil) }

// Until returns the end of validity while holding, and an instant long past
// otherwise (I7).
func (l *Lease) Until() clock.Instant {
	if l.stage != Holding {
		return -Never
	}
	return min(l.q.Until(), l.maxAt)
}

// Quiet reports whether the lease will send and tell nothing more by itself.
func (l *Lease) Quiet() bool {
	_, _, quiet := l.q.Releases()
	return quiet && !l.returning && !l.keptBack && (l.stage == Ended || l.stage == Gone || l.stage == Returned)
}

// Next returns when Wake is due, or Never.
func (l *Lease) Next() clock.Instant {
	at := l.Firm()
	if l.stage == Holding && !l.inRound && !l.q.Promoting() {
		at = min(at, l.renewAt)
	}
	return at
}

// Firm is Next but for a renewal, which may wait for others if it has to.
func (l *Lease) Firm() clock.Instant {
	at := l.q.Next()
	switch l.stage {
	case Waiting:
		at = min(at, l.retryAt, l.giveUp, l.stillAt)
		if l.inLine() {
			at = min(at, l.line.next())
		}
	case Trying:
		at = min(at, l.giveUp, l.stillAt)
	case Ending:
		at = min(at, l.endBy)
	case Holding:
		at = min(at, l.Until(), l.watchAt)
		if l.cfg.Expiring > 0 && !l.warned {
			at = min(at, l.Until().Add(-l.cfg.Expiring))
		}
	}
	if l.keptBack {
		at = min(at, l.minAt)
	}
	return at
}

// Start begins the first attempt.
func (l *Lease) Start(now clock.Instant) {
	if l.stage != Waiting {
		return
	}
	l.begin(now)
	l.try(now)
	l.settle(now)
}

func (l *Lease) try(now clock.Instant) {
	l.stage = Trying
	l.keepUp(now)
	l.q.Begin(now)
}

// Answer takes the end of a call.
func (l *Lease) Answer(now clock.Instant, store int, seq uint32, a Answer) {
	l.expire(now) // the local clock decides first: a late answer revives nothing (I5)
	c, flying := l.q.flight(store, seq)
	l.q.Answer(now, store, seq, a)
	if flying {
		l.heard(now, store, c, a)
	}
	l.settle(now)
}

// Wake takes the passing of time.
func (l *Lease) Wake(now clock.Instant) {
	l.expire(now)
	l.q.Wake(now)
	l.settle(now)
}

// Cancel ends the wait of an Acquire. A win decided before stands.
func (l *Lease) Cancel(now clock.Instant, why End) {
	l.expire(now)
	if l.stage == Waiting || l.stage == Trying {
		l.finish(now, why)
	} else if l.stage == Resuming {
		l.notResumed(why, ByNoQuorum)
	}
	l.settle(now)
}

// settle moves the lease on until nothing more is due.
func (l *Lease) settle(now clock.Instant) {
	switch l.stage {
	case Trying:
		l.settleAttempt(now)
	case Waiting:
		l.settleWait(now)
	case Resuming:
		l.settleResume(now)
	}
	switch l.stage {
	case Holding:
		l.settleHold(now)
	case Ending:
		if _, _, quiet := l.q.Releases(); quiet || now >= l.endBy {
			l.stage = Ended
			l.tell(Notice{Kind: NoticeFailed, Failure: l.last, End: l.end})
		}
	}
	l.settleKept(now)
	if l.returning {
		if answered, heard, _ := l.q.Releases(); heard {
			l.returning = false
			l.tell(Notice{Kind: NoticeReleased, OK: l.cfg.Rule.Met(answered)})
		}
	}
}

func (l *Lease) settleAttempt(now clock.Instant) {
	switch l.q.Phase() {
	case Held:
		l.minAt = l.q.start.Add(l.cfg.MinHold)
		l.hold(now, l.q.start)
	case Failed:
		l.last = l.q.Failure()
		final := l.once || l.last == ByMismatch || l.last == ByExpired ||
			l.last == ByNoQuorum && l.cfg.FailOnOutage
		if final {
			l.finish(now, EndDecided)
			return
		}
		l.stage = Waiting
		if l.cfg.Queues {
			l.retryAt = Never
			l.fallIn(now)
		} else {
			l.retryAt = now.Add(l.backoff())
			l.lateNews(now)
		}
		l.tell(Notice{Kind: NoticeAttempt, Failure: l.last})
		l.settleWait(now)
	case Asking:
		if now >= l.giveUp {
			l.finish(now, EndWait)
		} else {
			l.saySo(now)
		}
	}
}

// finish ends an Acquire that did not win. Its roll-back goes on; the caller
// hears of the failure when that has been answered, or after a moment.
func (l *Lease) finish(now clock.Instant, why End) {
	if l.q.Phase() == Asking && l.last == NoFailure {
		l.last = l.q.whyEnded()
	}
	l.q.Abandon(now)
	l.stage, l.end, l.endBy = Ending, why, now.Add(undoGrace)
}

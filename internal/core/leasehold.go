package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// wish is an explicit extension.
type wish struct {
	serial uint32
	ttl    time.Duration
}

// requests is what the holder asked for.
type requests struct {
	wishes     []wish // explicit extensions that wait for their round
	inProgress []wish
	changes    []modeChange // those that wait; the first may be under way
	step       changeStep   // of the first
}

func (l *Lease) requests() *requests {
	if l.asked == nil {
		l.asked = &requests{}
	}
	return l.asked
}

// expire ends a lease whose validity is over by the local clock.
func (l *Lease) expire(now clock.Instant) {
	if l.stage != Holding || l.cfg.Bugs.has(BugReviveLost) {
		return
	}
	switch {
	case now >= l.maxAt:
		l.lose(LostMaxHold)
	case now >= l.q.Until():
		l.lose(LostExpired)
	}
}

func (l *Lease) settleHold(now clock.Instant) {
	l.settleExtension(now)
	l.settleChange(now)
	if l.stage != Holding {
		return
	}
	if l.q.Phase() == Lost {
		l.lose(l.q.lossReason())
		return
	}
	if now >= l.watchAt {
		l.watchAt = Never
		l.tell(Notice{Kind: NoticeWatch})
	}
	if l.cfg.Expiring > 0 && !l.warned && now >= l.Until().Add(-l.cfg.Expiring) {
		l.warned = true
		l.tell(Notice{Kind: NoticeExpiring})
	}
	if l.inRound || l.q.Promoting() {
		return
	}
	switch r := l.asked; {
	case r != nil && len(r.wishes) > 0:
		r.inProgress, r.wishes = r.wishes, nil
		ttl := l.q.TTL()
		for _, w := range r.inProgress {
			ttl = max(ttl, w.ttl)
		}
		l.extend(now, ttl)
	case l.Changing() && l.asked.step == changeWaits:
		l.beginChange(now)
	case now >= l.renewAt && !l.deferred:
		l.extend(now, l.q.TTL())
	}
}

func (l *Lease) extend(now clock.Instant, ttl time.Duration) {
	if l.undoing() {
		l.q.Demote(now, ttl) // no vote can be extended before all carry one attempt again
	} else {
		l.q.Extend(now, ttl)
	}
	l.followRound(now)
}

// Renewing reports whether a round is under way that has not won.
func (l *Lease) Renewing() bool { return l.inRound && !l.wonSaid }

// Defer says whether a renewal that is due waits for its turn: what else is due
// is done meanwhile.
func (l *Lease) Defer(renewal bool) { l.deferred = renewal }

// followRound tells of the round that has just begun.
func (l *Lease) followRound(now clock.Instant) {
	l.inRound, l.wonSaid, l.roundAt = true, false, now
	l.settleExtension(now)
}

// settleExtension tells how the round under way stands.
func (l *Lease) settleExtension(now clock.Instant) {
	if !l.inRound {
		return
	}
	active, won := l.q.Extending()
	if won && !l.wonSaid {
		l.wonSaid, l.warned, l.misses = true, false, 0
		l.renewAt = l.renewal(l.roundAt)
		l.answerWishes(true)
		l.tell(Notice{Kind: NoticeRenewed})
	}
	if active {
		return
	}
	l.inRound = false
	if !won && l.q.Phase() == Held {
		// Again after a backoff, at most half a renewal period later, so that at
		// least two more attempts fit before the end. A promotion is undone also
		// where nothing is renewed.
		every := l.cfg.RenewEvery
		if every == 0 && l.undoing() {
			every = l.q.TTL() / 3
		}
		if every > 0 {
			l.misses++
			l.renewAt = now.Add(min(l.pause(l.misses), every/2))
		}
		l.answerWishes(false)
		l.tell(Notice{Kind: NoticeRenewFailed})
	}
}

func (l *Lease) answerWishes(ok bool) {
	r := l.asked
	if r == nil {
		return
	}
	for _, w := range r.inProgress {
		l.tell(Notice{Kind: NoticeExtended, Serial: w.serial, OK: ok})
	}
	r.inProgress = nil
}

// renewal is when a lease confirmed from start is extended next.
func (l *Lease) renewal(start clock.Instant) clock.Instant {
	if l.cfg.RenewEvery <= 0 {
		return Never
	}
	at := start.Add(l.cfg.RenewEvery)
	if grain := clock.Instant(l.cfg.RenewGrain); grain > 0 {
		at -= at % grain
	}
	return at
}

// Extend asks for an extension by ttl from now; serial comes back in the
// notice. It never shortens: a shorter time is told as done at once. It waits
// for the round under way, because rounds never overlap.
func (l *Lease) Extend(now clock.Instant, serial uint32, ttl time.Duration) {
	l.expire(now)
	if l.stage == Holding {
		if now.Add(ttl-l.q.drift(ttl)) <= l.q.Until() {
			l.tell(Notice{Kind: NoticeExtended, Serial: serial, OK: true})
		} else {
			r := l.requests()
			r.wishes = append(r.wishes, wish{serial, ttl})
		}
	} else {
		l.tell(Notice{Kind: NoticeExtended, Serial: serial})
	}
	l.settle(now)
}

// Release gives the lease back. The holder stops believing first. Called again
// it tries again at the stores that have not answered. After a loss it still
// goes to all stores: by then the holder has stopped.
func (l *Lease) Release(now clock.Instant) {
	l.expire(now)
	switch l.stage {
	case Holding:
		l.stage = Returned
		l.dropWishes()
	case Gone, Returned:
	default:
		return
	}
	l.inRound = false
	if now < l.minAt {
		l.keepBack()
	} else {
		l.returning = true
		l.q.Release(now)
	}
	l.settle(now)
}

// Shut ends a held lease because the locker closes: lost to its holder, and
// released. It reports false where there was nothing to release.
func (l *Lease) Shut(now clock.Instant) bool {
	l.expire(now)
	if l.stage != Holding {
		return false
	}
	l.lose(LostClosed)
	l.Release(now)
	return true
}

func (l *Lease) lose(why Reason) {
	l.stage, l.reason = Gone, why
	l.inRound = false
	l.q.Lose()
	l.dropWishes()
	l.tell(Notice{Kind: NoticeLost, Reason: why})
}

func (l *Lease) dropWishes() {
	if r := l.asked; r != nil {
		r.inProgress = append(r.inProgress, r.wishes...)
		r.wishes = nil
		l.answerWishes(false)
		l.dropChanges()
	}
}

// lossReason says who is to blame for votes that are gone.
func (q *Quorum) lossReason() Reason {
	why := LostQuorum
	for i := range q.slots {
		switch s := &q.slots[i]; {
		case s.forced:
			return LostForced
		case s.rival:
			why = LostTakenOver
		}
	}
	return why
}

// hold begins the time of a lease that was confirmed by requests of from.
func (l *Lease) hold(now, from clock.Instant) {
	l.stage, l.wait = Holding, nil
	l.roundAt = from // a wake starts no round at once: most are of those who waited
	l.renewAt = l.renewal(from)
	if l.cfg.MaxHold > 0 {
		l.maxAt = now.Add(l.cfg.MaxHold)
	}
	if l.cfg.Watch && l.cfg.RenewEvery > 0 {
		l.watchAt = now.Add(watchAfter)
	}
	l.tell(Notice{Kind: NoticeAcquired})
}

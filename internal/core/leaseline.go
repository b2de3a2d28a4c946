package core

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/clock"
)

// waiting is what a Lease knows while it stands in the stores' queues. A turn
// in a store makes that store ready; once a quorum is, a round asks for the
// votes. Everything that a store tells may be lost, so each store is also asked
// now and then.
type waiting struct {
	places    []place
	rounds    uint8         // that failed
	restUntil clock.Instant // no round before; -Never is at once
	ready     Set
	woken     Set           // a turn came while a call was in flight
	high      int64         // the highest counter that a turn told
	aloneAt   clock.Instant // while some are ready and too few: when to look at the others, and then at these
	looked    bool          // the others were looked at
	trip      time.Duration // a smoothed round trip
}

// place is where it stands in one store.
type place struct {
	pollAt clock.Instant // when to ask again
	rank   int           // how many stood before, when it asked last
	tries  uint8         // requests in a row that found no place
}

const (
	claimMin   = 100 * time.Millisecond // the least time of a turn
	claimTrips = 10                     // or so many round trips
	aloneTrips = 2                      // after so many with too few turns a wake is taken for lost
)

// trip is the round trip as learnt so far.
func (l *Lease) trip() time.Duration {
	if l.line == nil {
		return 0
	}
	return l.line.trip
}

// claim is how long a turn is to last: long enough to use it, and no longer than
// the others can bear if it is not.
func (l *Lease) claim() time.Duration {
	return max(min(max(claimMin, claimTrips*l.trip()), l.cfg.Request.TTL/4), 1)
}

// keepUp says for how long entries last from now on.
func (l *Lease) keepUp(now clock.Instant) {
	if !l.cfg.Queues {
		return
	}
	l.q.line.keep, l.q.line.claim = KeepMax, l.claim()
	if l.giveUp != Never {
		l.q.line.keep = min(KeepMax, max(l.giveUp.Sub(now), 0)+time.Second) // until the release of the place
	}
}

// fallIn goes on in line after an attempt that failed.
func (l *Lease) fallIn(now clock.Instant) {
	l.enter()
	w := l.line
	w.aloneAt, w.looked = Never, false
	if l.q.turn {
		// A few times older waiters may have come. Again and again it is a store that
		// promises turns and gives no votes, which is not to be asked without end.
		if w.rounds = min(w.rounds+1, 10); w.rounds > 4 {
			w.restUntil = now.Add(min(retryMin<<(w.rounds-5), retryMax))
		}
	}
	l.keepUp(now)
	l.q.Yield(now)
}

func (l *Lease) enter() {
	if l.line != nil {
		return
	}
	l.line = &waiting{places: make([]place, l.cfg.Rule.N()), aloneAt: Never, restUntil: -Never}
	for i := range l.line.places {
		l.line.places[i].pollAt = Never
	}
}

// inLine reports whether the lease waits in line, and not for a pause to end.
func (l *Lease) inLine() bool { return l.stage == Waiting && l.line != nil && l.q.Phase() == Failed }

// heard takes what an answer says of a place in line.
func (l *Lease) heard(now clock.Instant, i int, c call, a Answer) {
	if !l.cfg.Queues || c.verb != Acquire || c.kind != New || l.stage >= Holding || l.line == nil && a.Outcome == Granted {
		return
	}
	l.enter()
	w := l.line
	p := &w.places[i]
	woken := w.woken.Has(i) && !l.cfg.Bugs.has(BugDenialUndoesWake)
	w.woken, p.pollAt = w.woken.Without(i), Never
	if a.Outcome != Unknown && a.Outcome != Undelivered {
		if took := now.Sub(c.sent); w.trip == 0 {
			w.trip = took
		} else {
			w.trip += (took - w.trip) / 8
		}
	}
	there := a.Outcome == Contended || a.Outcome == Ready
	stands := l.q.slots[i].stands
	if there && (stands || !c.wait.Queued()) {
		p.tries = 0
	}
	switch {
	case there && c.wait.Queued() && !stands:
		// Not at our ticket: it would rank elsewhere than in the others. Again and
		// again it is a store that refuses and keeps no place.
		w.ready = w.ready.Without(i)
		l.pollIn(now, i, p.pause())
	case a.Outcome == Ready:
		l.myTurn(now, i, a.Token)
	case there && woken:
		l.myTurn(now, i, 0)
	case there:
		w.ready = w.ready.Without(i)
		left := a.Left
		if left == 0 { // it does not say
			left = l.claim()
		}
		p.rank = a.Rank
		l.pollIn(now, i, left+time.Duration(a.Rank)*l.claim()+w.trip/2)
	case a.Outcome == Granted:
		w.ready = w.ready.Without(i)
	default:
		w.ready = w.ready.Without(i)
		l.pollIn(now, i, retryMin+p.pause())
	}
	if c.wait == WaitQueue {
		if why := l.q.outlook(l.last); why != l.last {
			l.last = why
			l.tell(Notice{Kind: NoticeAttempt, Failure: why})
		}
	}
}

// pause is that before the next request to a store that keeps no place: none at
// first, and then one that doubles.
func (p *place) pause() (d time.Duration) {
	if p.tries > 0 {
		d = min(retryMin<<(p.tries-1), retryMax)
	}
	p.tries = min(p.tries+1, 10)
	return d
}

// pollIn has store i asked again in a while, in time to keep the place there.
func (l *Lease) pollIn(now clock.Instant, i int, d time.Duration) {
	most := max(l.q.line.keep, time.Millisecond) / 2
	if !l.hears.Has(i) {
		most = min(most, l.cfg.BackoffMax) // nothing else would tell
	}
	l.line.places[i].pollAt = now.Add(max(min(d, most), time.Millisecond))
}

// myTurn makes store i ready, if the lease still waits.
func (l *Lease) myTurn(now clock.Instant, i int, counter int64) {
	w := l.line
	switch l.stage {
	case Waiting:
		w.ready, w.high = w.ready.With(i), max(w.high, counter)
		w.places[i].pollAt = Never
	case Trying:
		if !l.q.Join(now, i) { // it is asked already: should that be denied, the turn stands
			w.ready, w.high = w.ready.With(i), max(w.high, counter)
		}
	}
}

// wokenInLine takes what a store told.
func (l *Lease) wokenInLine(now clock.Instant, i int, k Wake) {
	switch {
	case l.stage == Holding && k.Kind == WakeTurn:
		l.q.Mend(now, i)
		return
	case !l.cfg.Queues || l.stage > Trying || l.line == nil && k.Kind != WakeTurn:
		return
	}
	l.enter() // a turn may be told before the answer that says that it stands in line
	switch k.Kind {
	case WakeTurn:
		if l.q.slots[i].busy {
			l.line.woken = l.line.woken.With(i)
		}
		l.myTurn(now, i, k.Counter)
	case WakeNext:
		if l.stage == Waiting && !l.line.ready.Has(i) {
			l.pollIn(now, i, k.After+l.line.trip/2)
		}
	case WakeStarted, WakeEnded:
		// A turn may have come before the watch stood, or may come now.
		if l.stage == Waiting && !l.line.ready.Has(i) {
			l.line.places[i].pollAt = now
		}
	}
}

// movedUp looks again in a while because a vote ended: by then the turns of all
// who stood before are over, so that word of the own was lost.
func (l *Lease) movedUp(now clock.Instant, i int) {
	p := &l.line.places[i]
	if p.pollAt == Never { // ready, or being asked
		return
	}
	at := p.pollAt
	l.pollIn(now, i, time.Duration(p.rank+1)*l.claim()+l.line.trip/2)
	p.pollAt = min(p.pollAt, at)
}

// settleLine asks for the votes once the turn is the lease's in a quorum, and
// until then keeps its places.
func (l *Lease) settleLine(now clock.Instant) {
	w := l.line
	if l.cfg.FailOnOutage && l.last == ByNoQuorum {
		l.finish(now, EndDecided)
		return
	}
	l.keepUp(now)
	if now >= w.restUntil {
		w.restUntil = -Never
	}
	if l.cfg.Rule.Met(w.ready) && w.restUntil == -Never {
		ready, high := w.ready, w.high
		w.ready, w.high, w.aloneAt, w.looked = 0, 0, Never, false
		for i := range w.places {
			if ready.Has(i) {
				w.places[i].pollAt = Never
			}
		}
		l.stage = Trying
		l.q.Take(now, ready, high)
		return
	}
	l.alone(now)
	for i := range w.places {
		if now >= w.places[i].pollAt {
			w.places[i].pollAt = Never
			l.q.Stand(now, i)
		}
	}
}

// alone looks after a turn that is of no use yet: at the other stores once, in
// case they told and it was lost, and then at those that are ready, so that the
// turn there does not end.
func (l *Lease) alone(now clock.Instant) {
	w := l.line
	switch {
	case w.ready == 0:
		w.aloneAt, w.looked = Never, false
	case w.aloneAt == Never:
		// Not sooner than patienceMin: a turn that comes meanwhile would have to wait
		// for the answer, and where the word was lost there is time until the turn ends.
		w.aloneAt = now.Add(min(max(aloneTrips*w.trip, patienceMin), max(l.claim()/2, time.Millisecond)))
	case now >= w.aloneAt:
		for i := range w.places {
			if w.ready.Has(i) == w.looked {
				w.places[i].pollAt = now
			}
		}
		w.looked, w.aloneAt = true, now.Add(max(l.claim()/2, time.Millisecond))
	}
}

// next is when something is due in line.
func (w *waiting) next() clock.Instant {
	at := w.aloneAt
	if w.restUntil != -Never {
		at = min(at, w.restUntil)
	}
	for i := range w.places {
		at = min(at, w.places[i].pollAt)
	}
	return at
}

func (w *waiting) clone() *waiting {
	if w == nil {
		return nil
	}
	c := *w
	c.places = slices.Clone(w.places)
	return &c
}

func (e *encoder) waiting(w *waiting) {
	if w == nil {
		return
	}
	e.num(int64(w.ready), int64(w.woken), w.high, flag(w.looked), int64(w.trip))
	e.num(int64(w.rounds))
	e.at(w.aloneAt, w.restUntil)
	for i := range w.places {
		e.at(w.places[i].pollAt)
		e.num(int64(w.places[i].tries), int64(w.places[i].rank))
	}
}

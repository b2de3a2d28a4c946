package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// Pace is what a client has learnt of its stores, as advice: it decides who is
// asked when and who is waited for, never what an answer counts. The zero Pace
// knows nothing, and every store is then waited for until its call's limit.
type Pace struct {
	// Patience is how long each store's answer is awaited before the next is
	// asked; it still counts when it comes later. 0 is until the call's limit.
	Patience [MaxMembers]time.Duration
	Sick     Set // failed or silent lately: asked last, and not waited for
	// Failed are of Sick: the last call got no clear answer, so that an attempt that
	// needs it counts on it briefly. Where all have failed it is none.
	Failed Set
	Probe  Set // of Sick: due for a try in the background
	Known  Set // have answered; where one has not, its first answer may take long
}

// The least patience, so that a pause of the garbage collector or of a
// scheduler asks nobody twice as many; that with a store which has not answered
// yet, to which a connection may have to be made first: a process that lives for
// one lock learns of a dead store no other way; and how long a sick store is left
// alone between two tries.
const (
	patienceMin = 20 * time.Millisecond
	patienceNew = 200 * time.Millisecond
	probeMin    = 100 * time.Millisecond
	probeMax    = 10 * time.Second
)

// Health learns the pace of stores from their answers. The zero Health knows
// none of them.
type Health struct {
	stores [MaxMembers]storeHealth
}

// storeHealth is what is known of one store. Latency is smoothed, and its
// deviation with it, as RFC 6298 does for TCP.
type storeHealth struct {
	smooth, dev time.Duration
	known       bool // there is a latency
	failed      bool // its last call got no clear answer
	out         int  // calls in flight
	silent      clock.Instant
	pause       time.Duration // between tries
	again       clock.Instant // when the next is due
}

// Sent says that a call to store i leaves.
func (h *Health) Sent(now clock.Instant, i int) {
	s := &h.stores[i]
	if s.out == 0 {
		s.silent = now
	}
	if s.failed {
		s.again = now.Add(s.pause) // this is the try that was due
	}
	s.out++
}

// Ended says that a call to store i ended: it took so long, and clear says
// whether the store answered.
func (h *Health) Ended(now clock.Instant, i int, took time.Duration, clear bool) {
	s := &h.stores[i]
	s.out--
	s.silent = now
	s.failed = !clear
	switch {
	case !clear:
		s.pause = min(max(2*s.pause, probeMin), probeMax)
		s.again = now.Add(s.pause)
		return
	case s.known:
		s.dev += ((s.smooth - took).Abs() - s.dev) / 4
		s.smooth += (took - s.smooth) / 8
	default:
		s.smooth, s.dev, s.known = took, took/2, true
	}
	s.pause, s.again = 0, now
}

// Pace returns the advice for now. A try that is due is so until one leaves: not
// everybody who is told of it comes to make it.
func (h *Health) Pace(now clock.Instant, n int) Pace {
	var p Pace
	for i := range n {
		s := &h.stores[i]
		p.Patience[i] = patienceNew
		if s.known {
			p.Patience[i] = max(s.smooth+4*s.dev, patienceMin)
			p.Known = p.Known.With(i)
		}
		// Many calls of one client hang at once, and the first of them is reported
		// only at its limit: the others need not wait for that.
		hangs := s.out > 0 && now.Sub(s.silent) >= p.Patience[i]
		if !s.failed && !hangs {
			continue
		}
		p.Sick = p.Sick.With(i)
		if s.failed {
			p.Failed = p.Failed.With(i)
		}
		if now >= s.again && s.out == 0 {
			p.Probe = p.Probe.With(i)
		}
	}
	if p.Failed.Len() == n {
		p.Failed = 0 // the trouble may be ours, or too much load
	}
	return p
}

// Learn gives q advice for what it asks from now on.
func (q *Quorum) Learn(p Pace) {
	q.sick, q.probe = p.Sick, p.Probe
	for i := range q.slots {
		s := &q.slots[i]
		s.usual, s.known, s.failing = p.Patience[i], p.Known.Has(i), p.Failed.Has(i)
	}
}

// Learn gives l advice for what it asks from now on.
func (l *Lease) Learn(p Pace) { l.q.Learn(p) }

// patience is how long store i's answer is awaited before the next is asked.
func (q *Quorum) patience(i int) time.Duration {
	if p := q.slots[i].usual; p > 0 {
		return min(p, q.cfg.CallLimit)
	}
	return q.cfg.CallLimit
}

// hope is how long an attempt counts on the answer of store i. One that failed
// lately and is well again answers about as fast as it used to; where it does
// not, whoever asks in an outage is not to wait for the call's limit each time.
// One that is merely slow, as all are under too much load, is waited for: to give
// up early and ask again is how such a load goes on for ever.
func (q *Quorum) hope(i int) time.Duration {
	if q.slots[i].failing {
		return min(max(10*q.patience(i), patienceNew), q.cfg.CallLimit)
	}
	return q.cfg.CallLimit
}

// idle reports whether store i is to be left alone: it is sick, and its next
// try is not due. A store without a vote of ours costs nobody anything then.
func (q *Quorum) idle(i int) bool { return q.sick.Has(i) && !q.probe.Has(i) }

// candidate returns the store to ask next: as all clients agreed, but for the
// sick ones, which come last; or -1 when every store was asked.
func (q *Quorum) candidate() int {
	sick := -1
	for n := range q.slots {
		switch i := q.own.Ask.At(n); {
		case q.slots[i].vote != notAsked:
		case !q.sick.Has(i):
			return i
		case sick < 0:
			sick = i
		}
	}
	return sick
}

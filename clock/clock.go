// Package clock reads time for leases: a monotonic reading with no calendar
// meaning, from a source that a test can replace.
//
// A lease's validity is a difference of two readings of one clock, so the
// origin never matters and the wall clock is never asked. [System] also counts
// the time a machine sleeps, which Go's own monotonic reading does not do on
// Linux: a laptop that wakes after an hour must find its lease over.
package clock

import (
	"sync/atomic"
	"time"
)

// Instant is a reading of a [Clock], in nanoseconds since an origin that only
// that clock knows. Instants of different clocks cannot be compared.
type Instant int64

// Add returns t+d, kept within the range of an Instant.
func (t Instant) Add(d time.Duration) Instant {
	s := t + Instant(d)
	switch {
	case d > 0 && s < t:
		return 1<<63 - 1
	case d < 0 && s > t:
		return -1 << 63
	}
	return s
}

// Sub returns t-u as a duration, kept within the range of one.
func (t Instant) Sub(u Instant) time.Duration {
	d := t - u
	switch {
	case t < u && d > 0:
		return -1 << 63
	case t > u && d < 0:
		return 1<<63 - 1
	}
	return time.Duration(d)
}

// Clock is the only way this module learns the time.
type Clock interface {
	// Now returns a reading that never goes back.
	Now() Instant
}

// Go returns a clock that reads time.Now: inside a testing/synctest bubble it
// follows the bubble's time. Outside of one it does not count the time that a
// Linux machine sleeps, so prefer [System] there.
func Go() Clock { return goClock{origin: time.Now()} }

type goClock struct{ origin time.Time }

func (c goClock) Now() Instant { return Instant(time.Since(c.origin)) }

// Manual is a clock that moves only when told. It is safe for concurrent use.
// It fires no timers: code that waits for a Manual clock waits for ever, so it
// is for pure code and for readings, never for a Locker's own clock.
type Manual struct{ now atomic.Int64 }

// Now returns the reading set last.
func (m *Manual) Now() Instant { return Instant(m.now.Load()) }

// Advance moves the clock forward by d. A negative d panics: no clock that
// this module is given may go back.
func (m *Manual) Advance(d time.Duration) {
	if d < 0 {
		panic("clock: Manual.Advance by a negative duration")
	}
	m.now.Add(int64(d))
}

// Drift returns a clock that runs at rate times the rate of c and is ahead of
// it by offset at the moment of the call. Rate 1.01 is one per cent fast. A
// rate below zero panics.
func Drift(c Clock, rate float64, offset time.Duration) Clock {
	if rate < 0 {
		panic("clock: Drift with a negative rate")
	}
	return drift{clock: c, origin: c.Now(), rate: rate, offset: offset}
}

type drift struct {
	clock  Clock
	origin Instant
	rate   float64
	offset time.Duration
}

func (d drift) Now() Instant {
	gone := d.clock.Now().Sub(d.origin)
	return d.origin.Add(time.Duration(float64(gone) * d.rate)).Add(d.offset)
}

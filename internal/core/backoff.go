package core

import "time"

// maxDoubling bounds the shift of a backoff; any bound is reached long before.
const maxDoubling = 20

// calmAfterMove is where the backoff starts again when the name has changed
// hands since the last attempt: such a lock is free every now and then, and a
// waiter that comes once a second would hardly ever meet it free.
const calmAfterMove = 3

// backoff is the pause after an attempt that failed.
func (l *Lease) backoff() time.Duration {
	l.calm++
	if moved := l.q.counter > l.counter; moved && l.counter > 0 {
		l.calm = min(l.calm, calmAfterMove)
	}
	l.counter = l.q.counter
	return l.pause(l.calm)
}

// pause is the backoff after an attempt: evenly drawn from nothing to a bound
// that doubles ("full jitter"). It is a function of the attempt's number, so
// that no caller can use up another's.
func (l *Lease) pause(attempt uint32) time.Duration {
	bound := l.cfg.BackoffMax
	if d := min(attempt-1, maxDoubling); l.cfg.BackoffMin<<d < bound {
		bound = l.cfg.BackoffMin << d
	}
	if bound <= 0 {
		return 0
	}
	return time.Duration(l.draw() % uint64(bound))
}

// draw is SplitMix64 (Steele, Lea, Flood 2014): the whole state is one word,
// so that a cloned lease draws alike.
func (l *Lease) draw() uint64 {
	l.rng += 0x9e3779b97f4a7c15
	z := l.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

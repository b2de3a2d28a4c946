// Package alarm bounds calls that a goroutine makes one after another.
package alarm

import (
	"context"
	"sync"
	"time"
)

// Alarm ends calls at their limits, one after another. It is
// context.WithTimeout for a goroutine that makes many calls, with one timer
// for all of them: of every five allocations of an uncontended cycle one was a
// context's. Hardly any call needs the timer, so it is not stopped with the
// call that it was set for: it then rings in vain, or in time to be set for
// another. The zero Alarm is ready for use, by one goroutine.
type Alarm struct {
	mu    sync.Mutex
	timer *time.Timer
	rings time.Time    // when the timer does; zero is never
	call  *callContext // under way; nil between two
	spare []callContext
}

// alarmSpare is how many contexts are made at once. None is used twice, since
// who was given one may keep it.
const alarmSpare = 8

// Set begins a call that ends after limit. The context stays valid after Stop,
// for whoever keeps it.
func (a *Alarm) Set(base context.Context, limit time.Duration) context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.spare) == 0 {
		a.spare = make([]callContext, alarmSpare)
	}
	c := &a.spare[0]
	a.spare = a.spare[1:]
	c.Context, c.alarm, c.ends = base, a, time.Now().Add(limit)
	a.call = c
	return c
}

// Stop ends the call under way.
func (a *Alarm) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.call
	a.call = nil
	c.end(context.Canceled)
}

// Close stops the timer when no call will follow.
func (a *Alarm) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
}

// ring ends the call under way if its limit is over.
func (a *Alarm) ring() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.rings = time.Time{}
	if c := a.call; c != nil && c.done != nil {
		a.await(c)
	}
}

// await has the timer ring at a call's end, if not before. The caller holds mu.
func (a *Alarm) await(c *callContext) {
	left := time.Until(c.ends)
	switch {
	case left <= 0:
		c.end(context.DeadlineExceeded)
		return
	case !a.rings.IsZero() && !a.rings.After(c.ends):
		return
	case a.timer == nil:
		a.timer = time.AfterFunc(left, a.ring)
	default:
		a.timer.Reset(left)
	}
	a.rings = c.ends
}

// callContext carries the values of its base and ends with its call, at the
// latest at its limit.
type callContext struct {
	context.Context
	alarm *Alarm
	ends  time.Time
	done  chan struct{} // made when somebody asks; under alarm.mu, as err
	err   error
}

// end ends the call. The caller holds the alarm's mu.
func (c *callContext) end(why error) {
	if c.err != nil {
		return
	}
	c.err = why
	if c.done != nil {
		close(c.done)
	}
}

// Deadline returns the call's limit.
func (c *callContext) Deadline() (time.Time, bool) { return c.ends, true }

// Done returns what is closed when the call is over.
func (c *callContext) Done() <-chan struct{} {
	a := c.alarm
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.done != nil {
		return c.done
	}
	c.done = make(chan struct{})
	if c.err != nil {
		close(c.done)
	} else {
		a.await(c)
	}
	return c.done
}

// Err says why the call is over, and is nil before.
func (c *callContext) Err() error {
	c.alarm.mu.Lock()
	defer c.alarm.mu.Unlock()
	if c.err == nil && !time.Now().Before(c.ends) {
		c.end(context.DeadlineExceeded)
	}
	return c.err
}

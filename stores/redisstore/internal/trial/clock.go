// Package trial puts the same random requests to a Redis server's scripts and to
// the model of a store. It is shared by the tests on a real server and by those
// on an embedded one, which have a module of their own.
package trial

import "time"

// Clock is the calendar clock of a server, which stands still until it is
// moved.
type Clock struct {
	Now time.Time
	// Move makes the server read to, which lies by after what it read before.
	Move func(to time.Time, by time.Duration)
}

// Advance moves the clock by d, which may be negative.
func (c *Clock) Advance(d time.Duration) {
	c.Now = c.Now.Add(d)
	c.Move(c.Now, d)
}

// Noon is some whole millisecond, away from the end of a step.
var Noon = time.UnixMilli(1_764_000_060_000)

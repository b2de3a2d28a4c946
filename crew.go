package quorum

import (
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorum/internal/alarm"
)

// crewIdle is how long a goroutine of a crew waits for another call.
const crewIdle = time.Second

// crew makes the calls of a Locker, and wakes its machines, on goroutines that serve one call after
// another: a goroutine's stack, once grown to what a client needs, serves the
// next call as well. Nothing queues: where all are busy another one starts, so
// that a store that hangs holds nobody up.
type crew struct {
	mu    sync.Mutex
	idle  []*hand     // who fell idle last is called first, so that those who are not needed end
	sweep *time.Timer // ends them; made when first needed
	runs  bool        // the timer
	over  bool
}

// hand is one goroutine of a crew.
type hand struct {
	limit alarm.Alarm
	next  chan delivery // holds one; closed when there will be none
	since time.Time     // idle
}

func (c *crew) take(d delivery) {
	c.mu.Lock()
	last := len(c.idle) - 1
	if last < 0 {
		c.mu.Unlock()
		go c.work(&hand{next: make(chan delivery, 1)}, d)
		return
	}
	h := c.idle[last]
	c.idle[last], c.idle = nil, c.idle[:last]
	c.mu.Unlock()
	h.next <- d // it has room: only who takes h off the list sends
}

func (c *crew) work(h *hand, d delivery) {
	defer h.limit.Close()
	for more := true; more; d, more = <-h.next {
		d.run(&h.limit)
		if !c.rest(h) {
			return
		}
	}
}

// rest puts a goroutine on the list of those that are idle, unless the crew is over.
func (c *crew) rest(h *hand) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return false
	}
	h.since = time.Now()
	c.idle = append(c.idle, h)
	switch {
	case c.runs:
	case c.sweep == nil:
		c.sweep = time.AfterFunc(crewIdle, c.dismiss)
	default:
		c.sweep.Reset(crewIdle)
	}
	c.runs = true
	return true
}

// dismiss ends those that have been idle for long. The list is in the order in
// which they fell idle.
func (c *crew) dismiss() {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, now := 0, time.Now()
	for ; n < len(c.idle) && now.Sub(c.idle[n].since) >= crewIdle; n++ {
		close(c.idle[n].next)
	}
	c.idle = slices.Delete(c.idle, 0, n)
	if c.runs = len(c.idle) > 0; c.runs {
		c.sweep.Reset(c.idle[0].since.Add(crewIdle).Sub(now))
	}
}

// close ends the goroutines that are idle, and the others after their call.
func (c *crew) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	for _, h := range c.idle {
		close(h.next)
	}
	c.idle = nil
	if c.sweep != nil {
		c.sweep.Stop()
	}
}

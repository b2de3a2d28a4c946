package quorum

import (
	"sync"
	"time"
)

// crewIdle is how long a goroutine of a crew waits for another call.
const crewIdle = time.Second

// crew makes the calls of a Locker, and wakes its machines, on goroutines that serve one call after
// another: a goroutine's stack, once grown to what a client needs, serves the
// next call as well. Nothing queues: where all are busy another one starts, so
// that a store that hangs holds nobody up.
type crew struct {
	calls chan delivery
	once  sync.Once
	over  chan struct{}
}

func newCrew() *crew { return &crew{calls: make(chan delivery), over: make(chan struct{})} }

func (c *crew) take(d delivery) {
	select {
	case c.calls <- d:
	default:
		go c.work(d)
	}
}

func (c *crew) work(d delivery) {
	idle := time.NewTimer(crewIdle)
	defer idle.Stop()
	limit := &alarm{}
	for {
		if d.wake {
			d.d.wake()
		} else {
			d.carry(limit)
		}
		idle.Reset(crewIdle)
		select {
		case d = <-c.calls:
		case <-idle.C:
			return
		case <-c.over:
			return
		}
	}
}

// close ends the goroutines that are idle, and the others after their call.
func (c *crew) close() { c.once.Do(func() { close(c.over) }) }

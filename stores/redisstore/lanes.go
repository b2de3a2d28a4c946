package redisstore

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/alarm"
)

// lanes lets calls of many goroutines to one server share round trips. A lane
// is a goroutine that sends whatever waits, in one pipeline, and passes the
// answers on. One that was waited for leaves at once, alone unless others are
// about to leave in the same moment; calls that come while all lanes are under
// way leave together in the next.
type lanes struct {
	client   redis.UniversalClient
	replicas int           // that must acknowledge a grant
	patience time.Duration // with them
	ended    func(*call)   // hears of calls that nobody waits for

	mu      sync.Mutex
	waiting []*call
	running int         // lanes
	idle    int         // of these, without those that were woken
	wake    chan bool   // to one of these: true is that something waits, false that it is to end
	rested  time.Time   // when a lane fell idle last
	sweep   *time.Timer // ends the lanes when nothing came for long; made when first needed
	sweeps  bool        // the timer runs
	closed  bool        // no lane stays idle
}

const (
	laneCount = 2   // round trips under way at once
	laneLoad  = 256 // calls in one of them at most
	laneIdle  = time.Second
)

// call is one script call on its way.
type call struct {
	verb   verb
	limit  time.Duration // from when it is written, and before that from when it fell in line
	proves bool          // replicas must acknowledge it
	acks   int64         // how many did
	letter byte          // of its verb in a batch, 0 if it must go alone
	at     *scripts      // that it is made by
	again  bool          // its bundle did nothing for it
	ctx    context.Context
	came   time.Time     // in line
	told   chan struct{} // by which who waits for it is told its end, or
	began  *quorum.Call  // who asked and does not wait

	line string // what the script answered, if that is text
	row  any    // or else
	err  error

	shares bool      // a script, and is not sent by itself
	cmd    redis.Cmd // of one that is
	args   [8]any
	record any
	n      int       // words
	words  [4]string // the keys that the script reads besides the record, and what is packed
}

// put lets a call leave as soon as it can.
func (l *lanes) put(c *call) {
	c.again, c.line, c.row, c.err, c.came = false, "", nil, nil, time.Now()
	l.mu.Lock()
	l.waiting = append(l.waiting, c)
	switch {
	case l.idle > 0:
		l.idle--
		l.wake <- true // it has room for all lanes
	case l.running < laneCount:
		l.running++
		go l.run()
	}
	var late []*call // where no lane comes back, so that they do not gather
	for len(l.waiting) > 0 && l.waiting[0].late(c.came) {
		late = append(late, l.waiting[0])
		l.waiting = slices.Delete(l.waiting, 0, 1)
	}
	l.mu.Unlock()
	l.endLate(late)
}

// late reports whether a call has waited for its whole limit.
func (c *call) late(now time.Time) bool { return c.limit > 0 && now.Sub(c.came) >= c.limit }

func (l *lanes) endLate(late []*call) {
	for _, c := range late {
		c.err = overdue(context.DeadlineExceeded)
		l.end(c)
	}
}

// do makes a call. It returns when the call was answered or ctx has ended; an
// error that is Undelivered says that it never left.
func (l *lanes) do(ctx context.Context, c *call) error {
	c.ctx, c.told = ctx, make(chan struct{}, 1)
	l.put(c)
	select {
	case <-c.told:
		return c.err
	case <-ctx.Done():
		return l.leave(ctx, c)
	}
}

// leave gives up a call whose context has ended.
func (l *lanes) leave(ctx context.Context, c *call) error {
	l.mu.Lock()
	i := slices.Index(l.waiting, c)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i >= 0 {
		return overdue(ctx.Err())
	}
	select {
	case <-c.told:
		return c.err
	default:
		return ctx.Err() // a lane has it: it may be carried out
	}
}

// overdue is the error of a call whose time was over before it could leave.
func overdue(why error) error {
	return quorum.Undelivered(fmt.Errorf("it waited for other calls to this server: %w", why))
}

// run is a lane.
func (l *lanes) run() {
	var limit alarm.Alarm
	defer limit.Close()
	var batch, late []*call
	left := false
	defer func() {
		if !left {
			l.torn(batch)
		}
	}()
	for {
		var more bool
		if batch, late, more = l.take(batch[:0], late[:0]); !more {
			left = true
			return
		}
		l.endLate(late)
		switch {
		case len(batch) > 0:
			l.send(&limit, batch)
			runtime.Gosched() // whoever was answered and calls again comes along
		case len(late) == 0:
			if left = !<-l.wake; left {
				return
			}
			runtime.Gosched() // whoever is about to call as well comes along
		}
		clear(late) // send has emptied the batch
	}
}

// take takes what waits. A call that has waited for its whole limit behind a
// server that hangs is late; without any, the lane is idle, or is to end.
func (l *lanes) take(batch, late []*call) (some, over []*call, more bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	n := min(len(l.waiting), laneLoad)
	if n == 0 && l.closed {
		l.running--
		return batch, late, false
	}
	if n == 0 {
		l.rest(now)
		return batch, late, true
	}
	for _, c := range l.waiting[:n] {
		if c.late(now) {
			late = append(late, c)
		} else {
			batch = append(batch, c)
		}
	}
	l.waiting = slices.Delete(l.waiting, 0, n)
	return batch, late, true
}

// rest counts a lane as idle. The caller holds mu.
func (l *lanes) rest(now time.Time) {
	l.idle++
	l.rested = now
	switch {
	case l.sweeps:
		return
	case l.sweep == nil:
		l.sweep = time.AfterFunc(laneIdle, l.dismiss)
	default:
		l.sweep.Reset(laneIdle)
	}
	l.sweeps = true
}

// dismiss ends the lanes that are idle, when none was at work for long.
func (l *lanes) dismiss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if left := laneIdle - time.Since(l.rested); left > 0 && l.idle > 0 {
		l.sweep.Reset(left)
		return
	}
	l.sweeps = false
	l.endIdle()
}

// endIdle ends the lanes that are idle. The caller holds mu.
func (l *lanes) endIdle() {
	l.running -= l.idle
	for ; l.idle > 0; l.idle-- {
		l.wake <- false
	}
}

// torn ends a lane that a hook of the client ended, as the end of a test does,
// and what it was to send: who knows how far it came.
func (l *lanes) torn(batch []*call) {
	l.mu.Lock()
	l.running--
	l.mu.Unlock()
	for _, c := range batch {
		if c != nil {
			c.err = errTorn
			l.end(c)
		}
	}
}

var errTorn = errors.New("a hook of the client ended its goroutine")

// close ends the lanes that are idle, and the others when nothing waits.
func (l *lanes) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.endIdle()
	if l.sweep != nil {
		l.sweep.Stop()
	}
}

// end tells who asked that a call has ended, and with it who owns it.
func (l *lanes) end(c *call) {
	if c.told != nil {
		c.told <- struct{}{}
	} else {
		l.ended(c)
	}
}

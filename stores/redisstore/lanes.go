package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// lanes lets calls of many goroutines to one server share round trips. A call
// that finds a lane free leaves at once, alone unless others are ready to leave
// in the same moment; the others wait, and those
// that wait when a lane falls free leave in it together, sent by one of
// themselves: nothing here starts a goroutine.
type lanes struct {
	client   redis.UniversalClient
	replicas int           // that must acknowledge a grant
	patience time.Duration // with them

	mu      sync.Mutex
	busy    int
	waiting []*call
}

const (
	laneCount = 2   // round trips under way at once
	laneLoad  = 256 // calls in one of them at most
)

// call is one script call on its way.
type call struct {
	cmd    redis.Cmd
	limit  time.Duration // from when it is written
	proves bool          // replicas must acknowledge it
	acks   int64         // how many did
	letter byte          // of its verb in a batch, 0 if it must go alone
	at     *scripts      // that it is made by
	again  bool          // its bundle did nothing for it

	end   time.Time // of its context, then of its limit too; zero is none
	batch []*call   // those that this call is to send, itself among them
	told  chan told // holds one
	n     int       // arguments
	args  [8]any
	words [4]string
}

type told uint8

const (
	lead told = iota // send the batch
	done             // it was sent and answered
)

// do makes a call. It returns when the call was answered or ctx has ended; an
// error that is Undelivered says that it never left.
func (l *lanes) do(ctx context.Context, c *call) error {
	c.end, _ = ctx.Deadline()
	c.again = false
	l.mu.Lock()
	free := l.busy < laneCount
	if free {
		l.busy++
		l.mu.Unlock()
		runtime.Gosched() // whoever is about to call as well comes along
		l.mu.Lock()
		if len(l.waiting) == 0 {
			l.mu.Unlock()
			defer l.next()
			return l.send(ctx, c)
		}
	}
	c.told = make(chan told, 1)
	l.waiting = append(l.waiting, c)
	l.mu.Unlock()
	if free {
		l.next()
	}
	select {
	case what := <-c.told:
		if what == lead {
			l.sendAll(c)
		}
		return c.cmd.Err()
	case <-ctx.Done():
		return l.leave(ctx, c)
	}
}

// leave gives up a call whose context has ended while it waited.
func (l *lanes) leave(ctx context.Context, c *call) error {
	l.mu.Lock()
	if i := slices.Index(l.waiting, c); i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
		l.mu.Unlock()
		return quorum.Undelivered(fmt.Errorf("it waited for other calls to this server: %w", ctx.Err()))
	}
	l.mu.Unlock()
	// It is in a batch by now. Its sender was told so under mu, and must send.
	select {
	case what := <-c.told:
		if what == lead {
			l.sendAll(c)
		}
		return c.cmd.Err()
	default:
		return ctx.Err() // the sender has it: it may be carried out
	}
}

// send sends one call alone, in a pipeline only where replicas are asked too.
func (l *lanes) send(ctx context.Context, c *call) error {
	if c.limit > 0 && (c.end.IsZero() || time.Until(c.end) > c.limit) {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.limit)
		defer cancel()
	}
	if !c.proves {
		return l.client.Process(ctx, &c.cmd)
	}
	l.trip(ctx, nil, []*call{c})
	return c.cmd.Err()
}

// sendAll sends a batch and lets the next one go. The end of one call's context
// must not end the others, so the batch has one of its own.
func (l *lanes) sendAll(sender *call) {
	defer l.next()
	ctx, cancel := context.Background(), context.CancelFunc(func() {})
	if !sender.end.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, sender.end)
	}
	defer cancel()
	bundles, singles := bundle(ctx, sender.batch)
	l.trip(ctx, bundles, singles)
	var rest []*call
	for _, b := range bundles {
		rest = append(rest, b.share()...)
	}
	tell := func(calls []*call, again bool) {
		for _, c := range calls {
			if c != sender && c.again == again { // who is told reads its call, and may be gone
				c.told <- done
			}
		}
	}
	tell(sender.batch, false)
	if len(rest) > 0 {
		l.trip(ctx, nil, rest)
		tell(rest, true)
	}
}

// straight sends calls at once, beside the lanes.
func (l *lanes) straight(ctx context.Context, limit time.Duration, batch []*call) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	l.trip(ctx, nil, batch)
}

// trip sends bundles and single calls in one round trip. Each command keeps its
// own error, so that of Exec says nothing more.
func (l *lanes) trip(ctx context.Context, bundles []*bundled, singles []*call) {
	pipe := l.client.Pipeline()
	proves := false
	for _, b := range bundles {
		_ = pipe.Process(ctx, b.cmd)
		proves = proves || b.proves()
	}
	for _, c := range singles {
		_ = pipe.Process(ctx, &c.cmd)
		proves = proves || c.proves
	}
	if !proves {
		_, _ = pipe.Exec(ctx)
		return
	}
	wait := redis.NewCmd(ctx, "wait", l.replicas, l.patience.Milliseconds())
	_ = pipe.Process(ctx, wait)
	_, _ = pipe.Exec(ctx)
	acks, _ := wait.Int64() // none where it failed
	for _, b := range bundles {
		for _, c := range b.calls {
			c.acks = acks
		}
	}
	for _, c := range singles {
		c.acks = acks
	}
}

// next lets those who wait leave in the lane that has fallen free. The one whose
// time is over last sends them all, so that nobody is kept beyond its own.
func (l *lanes) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), laneLoad)
	if n == 0 {
		l.busy--
		return
	}
	batch := slices.Clone(l.waiting[:n])
	l.waiting = slices.Delete(l.waiting, 0, n)
	sender, now := batch[0], time.Now()
	for _, c := range batch {
		if end := now.Add(c.limit); c.limit > 0 && (c.end.IsZero() || end.Before(c.end)) {
			c.end = end
		}
		if !sender.end.IsZero() && (c.end.IsZero() || c.end.After(sender.end)) {
			sender = c
		}
	}
	sender.batch = batch
	sender.told <- lead
}

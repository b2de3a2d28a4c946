package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum/internal/alarm"
)

// send sends a batch, and once more those of its calls that could not share a
// script. The end of one call's context must not end the others. What has ended
// is taken off the batch.
func (l *lanes) send(limit *alarm.Alarm, batch []*call) {
	ctx, c := context.Background(), batch[0]
	if len(batch) == 1 {
		ctx = c.ctx
	}
	ctx = limit.Set(ctx, longestLeft(batch))
	defer limit.Stop()
	if len(batch) == 1 && !c.proves {
		l.alone(ctx, c)
		batch[0] = nil
		l.end(c)
		return
	}
	bundles, singles := bundle(ctx, batch)
	if l.trip(ctx, bundles, singles, batch) {
		for _, b := range bundles {
			b.share()
		}
	}
	var rest []*call
	for i, c := range batch {
		if c.again && c.ctx.Err() == nil { // else its owner may have gone on
			rest = append(rest, c)
			continue
		}
		batch[i] = nil
		free := c.shares && c.began != nil
		l.end(c)
		if free {
			*c = call{}
			spare.Put(c)
		}
	}
	if len(rest) == 0 {
		return
	}
	l.trip(ctx, nil, rest, rest)
	clear(batch)
	for _, c := range rest {
		l.end(c)
	}
}

// longestLeft is how long the one whose time is over last may still take.
func longestLeft(batch []*call) (left time.Duration) {
	for _, c := range batch {
		mine := c.limit
		if mine <= 0 {
			mine = unlimited
		}
		if end, ok := c.ctx.Deadline(); ok {
			mine = max(min(mine, time.Until(end)), 1)
		}
		left = max(left, mine)
	}
	return left
}

// unlimited is the limit of a call without one, which no Locker makes: others
// leave with it.
const unlimited = 10 * time.Second

// alone sends one call without a pipeline.
func (l *lanes) alone(ctx context.Context, c *call) {
	defer rescue(nil, c)
	_ = l.client.Process(ctx, c.command(ctx))
	c.answer()
}

// answer keeps what the call's own command brought.
func (c *call) answer() {
	val, err := c.cmd.Result()
	if text, ok := val.(string); ok {
		c.line = text
	} else {
		c.row = val
	}
	c.err = err
}

// rescue makes a panic of the client, or of a hook in it, an unknown outcome of
// calls that nobody may repeat.
func rescue(batch []*call, more ...*call) {
	if p := recover(); p != nil {
		for _, c := range append(more, batch...) {
			c.err = fmt.Errorf("the client panicked: %v", p)
		}
	}
}

// trip sends bundles and single calls, which are all, in one round trip. Each
// command keeps its own error, so that of Exec says nothing more. It is not done
// where the client panicked.
func (l *lanes) trip(ctx context.Context, bundles []*bundled, singles, all []*call) (done bool) {
	defer rescue(all)
	pipe := l.client.Pipeline()
	proves := false
	for _, b := range bundles {
		_ = pipe.Process(ctx, b.cmd)
		proves = proves || b.proves()
	}
	for _, c := range singles {
		_ = pipe.Process(ctx, c.command(ctx))
		proves = proves || c.proves
	}
	var wait *redis.Cmd
	if proves {
		wait = redis.NewCmd(ctx, "wait", l.replicas, l.patience.Milliseconds())
		_ = pipe.Process(ctx, wait)
	}
	_, _ = pipe.Exec(ctx)
	for _, c := range singles {
		c.answer()
	}
	if !proves {
		return true
	}
	acks, _ := wait.Int64() // none where it failed
	for _, b := range bundles {
		for _, c := range b.calls {
			c.acks = acks
		}
	}
	for _, c := range singles {
		c.acks = acks
	}
	return true
}

// straight sends commands at once, beside the lanes.
func (l *lanes) straight(ctx context.Context, limit time.Duration, cmds []*redis.Cmd) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	pipe := l.client.Pipeline()
	for _, c := range cmds {
		_ = pipe.Process(ctx, c)
	}
	_, _ = pipe.Exec(ctx)
}

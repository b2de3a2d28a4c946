package consulstore

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

// call is one verb being carried out. It is the table's backend: read, decide,
// write if nothing changed meanwhile, or all over again.
type call struct {
	*Store
	verb verb
	r    *quorum.Request

	of      *session      // for this owner's vote, not used yet
	renewed *session      // of this owner's vote, renewed by this call
	mark    *session      // for a quarantine, not used yet
	touched bool          // a renewal may have had its effect
	left    *snapshot     // what a release left where others wait
	line    chan struct{} // where this call has its turn, after a race that it lost
}

type decide = func(rec *model.Record, name *model.Name, now model.Time)

// View implements modelstore.Backend.
func (c *call) View(ctx context.Context, key string, f decide) error {
	snap, err := c.read(ctx, key)
	if err != nil {
		return c.unsent(c.verb, key, err)
	}
	rec := snap.recordOf()
	now, err := c.now(snap, &rec)
	if err != nil {
		return c.unsent(c.verb, key, err)
	}
	name := snap.nameOf("", now, c.r.MaxTTL)
	f(&rec, &name, now)
	return nil
}

// Update implements modelstore.Backend.
func (c *call) Update(ctx context.Context, key string, f decide) error {
	defer func() {
		c.spare(c.of)
		c.spare(c.mark)
		if c.line != nil {
			<-c.line
		}
	}()
	snap, err := c.begin(ctx, key)
	for races := 0; ; races++ {
		if err != nil {
			return c.failed(key, err, races)
		}
		var p *plan
		if p, err = c.decide(ctx, snap, key, f); err != nil {
			return c.failed(key, err, races)
		}
		if !p.writes() {
			c.keep(key, p)
			return nil
		}
		if c.trial.read != nil {
			c.trial.read()
		}
		began := time.Now()
		done, err := c.commit(ctx, p)
		switch {
		case err != nil:
			return c.unknown(key, p, err)
		case done:
			c.keep(key, p)
			return nil
		}
		if snap, err = c.again(ctx, key, races, time.Since(began)); err != nil {
			return c.failed(key, err, races+1)
		}
	}
}

// again reads anew after a conflict. Of many that race for a name one wins at a
// time, so those of this client that lost go on one after another, and pause at
// random if others win even so: n of them need far less than n·n transactions.
func (c *call) again(ctx context.Context, key string, races int, took time.Duration) (*snapshot, error) {
	if c.line == nil {
		line := c.lines[crc32.ChecksumIEEE([]byte(key))%lineCount]
		select {
		case line <- struct{}{}:
			c.line = line
			return c.read(ctx, key)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if c.verb == release { // which others wait for
		return c.read(ctx, key)
	}
	timer := time.NewTimer(rand.N(min(time.Duration(races+1)*took, pauseMost) + 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.read(ctx, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pauseMost bounds a pause, in case a transaction took long.
const pauseMost = 100 * time.Millisecond

// failed is the end of a call that wrote nothing: whatever it lost, it lost
// before a transaction could have had an effect.
func (c *call) failed(key string, err error, races int) error {
	if races > 0 && errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("others changed the name %d times meanwhile: %w", races, err)
	}
	if c.touched {
		err, _ = explain(err)
		return c.wrap(c.verb, key, err)
	}
	return c.unsent(c.verb, key, err)
}

// unknown is the end of a call whose transaction was not answered, or was
// refused as a whole. Its sessions are used no more: it may still arrive.
func (c *call) unknown(key string, p *plan, err error) error {
	c.drop(key, c.r.Owner)
	err, never := explain(err)
	if !never {
		c.of, c.mark = nil, nil
	}
	err = c.wrap(c.verb, key, err)
	if never && !c.touched {
		return quorum.Undelivered(err)
	}
	return err
}

// begin reads what there is and, beside it, gets what the vote needs. A
// release of a vote that this client has knows what there is.
func (c *call) begin(ctx context.Context, key string) (*snapshot, error) {
	h, known := c.held(key, c.r.Owner)
	switch {
	case c.left != nil:
		snap := c.left
		c.left = nil
		return snap, nil
	case c.verb == release && known && !c.r.Entomb:
		return h.snap, nil
	}
	var prepare func() error
	switch {
	case c.verb == extend && known && h.of.ttl >= c.r.TTL && c.fresh(h.of):
		c.touched = true
		prepare = func() error {
			of := *h.of
			ok, err := c.renew(ctx, &of)
			if ok {
				c.renewed = &of
			}
			return err
		}
	case c.verb == acquire && !c.behind() || c.verb == extend:
		prepare = func() (err error) { c.of, err = c.obtain(ctx, c.r.TTL); return err }
	default:
		return c.read(ctx, key)
	}
	prepared := make(chan error, 1)
	go func() { prepared <- prepare() }()
	snap, err := c.read(ctx, key)
	if failed := <-prepared; err == nil {
		err = failed
	}
	return snap, err
}

// behind reports whether a call is hardly granted a vote: it only stands in
// line, or falls in where others wait.
func (c *call) behind() bool {
	return c.r.Wait == quorum.WaitQueue || c.r.Wait == quorum.WaitTake && c.r.Ticket == 0 && c.waiters.Has(c.r.Key)
}

// now is the instant to decide at, and the step that the record has then. There
// is no clock that a transaction could use, so the step follows the clocks of
// clients, upward only. Nothing else is decided by it: what ends, ends with its
// session, and the instant is chosen so that the model sees it so.
func (c *call) now(snap *snapshot, rec *model.Record) (model.Time, error) {
	now, ok := rec.Follow(model.Time(c.wall().UnixMicro()), snap.recordIndex > 0, c.verb != release)
	if !ok {
		return 0, fmt.Errorf("%w: the clock of this machine reads %v", quorum.ErrInvalidOption, c.wall())
	}
	now = max(now, c.newcomer(snap))
	if rec.Standing == model.Quarantined && c.r.MaxTTL > 0 {
		if snap.waiting {
			maxTTL := model.Time(micros(c.r.MaxTTL))
			now = min(max(now, rec.End-maxTTL+1), rec.End-maxTTL/8)
		} else {
			now = max(now, rec.End)
		}
	}
	rec.Moved = now
	return now, nil
}

package kubestore

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
//
// The API server writes one Lease at a time, and a decision rests on two: the
// record's and the name's. So the record is read again after the name was
// written. If it is as it was before, it was so while the name was written, for
// its resource version never comes back; then the two were one step. If not,
// the decision is taken once more. What was written meanwhile counts for nobody,
// since nobody was answered.
type call struct {
	*Store
	verb verb
	r    *quorum.Request

	touched bool          // the name was written, or may have been
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
	name := snap.nameOf("", now)
	f(&rec, &name, now)
	return nil
}

// Update implements modelstore.Backend.
func (c *call) Update(ctx context.Context, key string, f decide) error {
	defer func() {
		if c.line != nil {
			<-c.line
		}
	}()
	snap, err := c.begin(ctx, key)
	for races := 0; ; {
		if err != nil {
			return c.failed(key, err, races)
		}
		var p *plan
		if p, err = c.decide(snap, key, f); err != nil {
			return c.failed(key, err, races)
		}
		if c.trial.read != nil {
			c.trial.read()
		}
		began := time.Now()
		var next *snapshot
		if next, err = c.commit(ctx, p, key); err != nil {
			return c.failed(key, err, races)
		}
		switch {
		case next == p.before: // all is as was decided
			return nil
		case next != nil: // something was written or found, on which to decide again
			snap = next
		default:
			races++
			snap, err = c.again(ctx, key, races, time.Since(began))
		}
	}
}

// begin reads what there is. Of a vote that this client took or extended it
// knows what there is: if that is not so any more, the write fails.
func (c *call) begin(ctx context.Context, key string) (*snapshot, error) {
	if c.verb == extend || c.verb == release {
		if own := c.seen.own(leaseName(c.prefix, key)); own != nil {
			if v := own.vote(c.r.Owner.Hex()); v != nil && v.Attempt == c.r.Owner.Attempt {
				return c.refresh(own), nil
			}
		}
	}
	return c.read(ctx, key)
}

// again reads anew after a conflict. Of many that race for a name one wins at a
// time, so those of this client that lost go on one after another, and pause at
// random if others win even so: n of them need far less than n·n requests.
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
	timer := time.NewTimer(rand.N(min(time.Duration(races)*took, pauseMost) + 1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return c.read(ctx, key)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pauseMost bounds a pause, in case a request took long.
const pauseMost = 100 * time.Millisecond

// failed is the end of a call that could not be finished. If it wrote nothing
// of the name, nothing of it stays.
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

// now is the instant to decide at, and the step that the record has then. There
// is no clock that all clients share, so the step follows the clocks of clients,
// upward only. Nothing else is decided by it: what is left of a vote or of a
// quarantine was measured by this client, and the instant is chosen so that the
// model sees it so.
func (c *call) now(snap *snapshot, rec *model.Record) (model.Time, error) {
	now, ok := rec.Follow(model.Time(c.wall().UnixMicro()), snap.set != nil, c.verb != release)
	if !ok {
		return 0, fmt.Errorf("%w: the clock of this machine reads %v", quorum.ErrInvalidOption, c.wall())
	}
	if rec.Standing == model.Quarantined {
		if snap.waits > 0 {
			now = rec.End - model.Time(micros(snap.waits))
		} else {
			now = max(now, rec.End)
		}
	}
	rec.Moved = now
	return now, nil
}

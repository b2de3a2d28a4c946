package sqlitestore

import (
	"context"
	"slices"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

// SQLite tells no other process of a change, so a watch reads the name's row
// again and again: after a tenth of the time that it has been quiet, so that a
// wake is late by a tenth of what was waited for, and who holds a name for long
// costs little.
const (
	lookFirst = 5 * time.Millisecond
	lookMost  = 250 * time.Millisecond
)

// Watch tells of a name until ctx ends, see [quorum.Watcher]. It reads the
// name's row, every 5 ms at first and every 250 ms of one that does not change.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	var before sight
	changed := time.Now()
	for first := true; ; first = false {
		now, err := s.file.see(ctx, r)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if first {
			before = now
			tell(quorum.Wake{Kind: quorum.WakeStarted})
		}
		for _, w := range now.since(before) {
			tell(w)
		}
		if now.version != before.version {
			changed = time.Now()
		}
		before = now
		timer := time.NewTimer(min(max(time.Since(changed)/10, lookFirst), lookMost))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// sight is what a watch saw of a name.
type sight struct {
	version int64
	counter int64
	votes   []model.Vote // that stand
	queue   []model.Entry
}

func (f *file) see(ctx context.Context, r quorum.Request) (sight, error) {
	if r.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.Limit)
		defer cancel()
	}
	c, err := f.look(ctx, r.Key)
	if err != nil {
		return sight{}, f.wrap(err)
	}
	counter := c.name.Counter
	votes := c.name.Live(&c.after.Record, r.MaxTTL, c.time)
	return sight{c.row.version.Int64, counter, votes, c.name.Queue}, nil
}

// since says what happened. Of a row that was written more than once between
// two looks it says that something changed: a wake is a hint.
func (s sight) since(before sight) (wakes []quorum.Wake) {
	stands := func(v model.Vote) bool {
		return slices.ContainsFunc(s.votes, func(w model.Vote) bool { return w.Owner == v.Owner })
	}
	unseen := s.version != before.version && s.version != before.version+1
	gone := slices.ContainsFunc(before.votes, func(v model.Vote) bool { return !stands(v) })
	turns := s.turns(before)
	if unseen || gone {
		turns = append(turns, quorum.Wake{Kind: quorum.WakeChanged})
	}
	return turns
}

// turns tells those whose turn has come, and who is next but one.
func (s sight) turns(before sight) (wakes []quorum.Wake) {
	for i, e := range s.queue {
		had := slices.ContainsFunc(before.queue, func(b model.Entry) bool { return b.Owner == e.Owner && b.Turn > 0 })
		switch {
		case e.Turn > 0 && !had:
			wakes = append(wakes, quorum.Wake{Kind: quorum.WakeTurn, Owner: digest(e), Counter: s.counter})
		case e.Turn == 0:
			if len(wakes) > 0 {
				wakes = append(wakes, quorum.Wake{Kind: quorum.WakeNext, Owner: digest(e), After: s.queue[i-1].Claim})
			}
			return wakes
		}
	}
	return wakes
}

func digest(e model.Entry) string {
	return quorum.Owner{ID: quorum.OwnerID(e.Owner.ID)}.Digest()
}

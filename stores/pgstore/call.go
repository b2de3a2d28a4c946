package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quorumlock/quorum"
)

// position is how far this client has seen a server's log: a server that shows
// less is an older state of it.
type position struct {
	server string
	life   int64
	seen   string // a pg_lsn
	at     uint64 // the same as a number
}

// tries bounds how often one call is made when the record has to be brought up
// to now, or the functions have to be made.
const tries = 4

// ask calls the function of Acquire and Extend. The record of the server needs
// its lock once in five minutes, when the step moves, and after a restart; the
// server then did nothing and is asked again.
func (s *Store) ask(ctx context.Context, v verb, r *quorum.Request, kind string) (quorum.Grant, error) {
	for lock := range tries {
		known := s.known.Load()
		var a answer
		err := s.call(ctx, r, s.text.ask, []any{
			kind, []byte(r.Key), r.Owner.ID[:], int64(r.Owner.Attempt), r.Mode == quorum.ModeShared, micros(r.TTL), r.Floor,
			[]byte(r.Label), r.Wait.String(), r.Ticket, micros(r.Keep), micros(r.Claim), *s.hand.Load(),
			int64(r.Set), micros(r.MaxTTL), millis(r.Limit), known.server, known.life, known.seen, lock > 0,
		}, a.fields())
		if err != nil {
			return quorum.Grant{}, s.wrap(v, r.Key, err)
		}
		if a.word == "again" {
			continue
		}
		s.saw(a.server, a.life, a.seen)
		if a.after != nil {
			s.hand.Store(&a.after)
		}
		return s.grant(v, r, &a)
	}
	return quorum.Grant{}, s.unsent(fmt.Errorf("%s %q: the record kept changing", v, r.Key))
}

// call makes one call, bounded by the request's limit from when it has a
// connection.
func (s *Store) call(ctx context.Context, r *quorum.Request, text string, args, into []any) error {
	for range tries {
		err := s.send(ctx, r.Limit, text, args, into)
		if err == nil {
			return nil
		}
		if s.eager && missing(err) {
			if err := s.Setup(ctx); err != nil {
				return quorum.Undelivered(err)
			}
			continue
		}
		return explain(err, s.schema, s.limits.Doubles)
	}
	return quorum.Undelivered(errors.New("the schema kept disappearing"))
}

func (s *Store) send(ctx context.Context, limit time.Duration, text string, args, into []any) error {
	if err := ctx.Err(); err != nil {
		return quorum.Undelivered(err)
	}
	c, err := s.db.conn(ctx)
	if err != nil {
		return quorum.Undelivered(fmt.Errorf("connect: %w", err))
	}
	defer c.done()
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	return c.row(ctx, text, args, into)
}

// saw notes how far the server's log was. Answers of concurrent calls come in
// any order, so the furthest counts.
func (s *Store) saw(server string, life int64, seen string) {
	at, ok := parseLSN(seen)
	if !ok || server == "" {
		return
	}
	next := &position{server, life, seen, at}
	for {
		old := s.known.Load()
		if old.server == server && (old.life > life || old.life == life && old.at >= at) {
			return
		}
		if s.known.CompareAndSwap(old, next) {
			return
		}
	}
}

// parseLSN reads a position such as 16/B374D848.
func parseLSN(text string) (uint64, bool) {
	var high, low uint32
	if _, err := fmt.Sscanf(text, "%X/%X", &high, &low); err != nil {
		return 0, false
	}
	return uint64(high)<<32 | uint64(low), true
}

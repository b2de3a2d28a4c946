//go:build unix

package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// ttl is that of every lock of every row.
const ttl = 10 * time.Second

// row is a library with one way to set it up.
type row struct {
	name     string
	lone     bool     // it knows one server only
	commands []string // what its calls are to Redis, as INFO names it
	open     func(s *servers) locks
}

// The rows. A library that can be tuned stands here as its documents set it up,
// and with what was found best for it by hand.
var (
	inOrder   = ours("quorum, in order", quorum.InOrder)
	firstRest = ours("quorum, first then rest", quorum.FirstThenRest)
	allAtOnce = ours("quorum, all at once", quorum.AllAtOnce)

	byDefault = firstRest

	orders  = []row{inOrder, firstRest, allAtOnce}
	redlock = []row{redsyncPlain, redsyncTuned, redsyncRueidis}
	lone    = []row{redislockRow, rueidislockRow, postgresRow, etcdRow, consulRow}
)

// rowsFor is the rows that can be had with n servers.
func rowsFor(n int, all ...[]row) []row {
	return slices.DeleteFunc(slices.Concat(all...), func(r row) bool { return r.lone && n > 1 })
}

// locker makes quorum a row.
type locker struct{ *quorum.Locker }

func (l locker) acquire(ctx context.Context, key string) (held, error) {
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	return lease, nil
}

// ours is quorum as Open sets it up.
func ours(name string, order quorum.Order) row {
	return row{name: name, commands: []string{"evalsha", "eval", "subscribe"}, open: func(s *servers) locks {
		return locker{s.locker(quorum.AskOrder(order))}
	}}
}

// locker opens the set of the servers, by clients of its own.
func (s *servers) locker(options ...quorum.Option) *quorum.Locker {
	s.tb.Helper()
	var dsns []string
	for i, addr := range s.addrs {
		dsns = append(dsns, fmt.Sprintf("redis://%s?name=node%d", addr, i))
	}
	set, err := quorum.Open(s.tb.Context(), dsns, redisstore.Opener())
	if err != nil {
		s.tb.Fatal(err)
	}
	return s.declared(set, options...)
}

// declared is a Locker of a set; the first declares its servers new.
func (s *servers) declared(set quorum.Store, options ...quorum.Option) *quorum.Locker {
	s.tb.Helper()
	l, err := quorum.New(set, append([]quorum.Option{quorum.TTL(ttl)}, options...)...)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx) // a server may be down by now
	})
	if !s.inits {
		if err := l.Init(s.tb.Context()); err != nil {
			s.tb.Fatal(err)
		}
		s.inits = true
	}
	return l
}

// keys names locks so that no two samples share one: what a cancelled waiter of
// one row may have left must not be in the way of another. All names are alike
// in length, whosever they are: bytes are counted, and a server has work by them.
func keys(r row, round int, fresh bool) func(worker, cycle int) string {
	prefix := fmt.Sprintf("%08x:%03d:", crc32.ChecksumIEEE([]byte(r.name)), round)
	if fresh {
		return func(worker, cycle int) string { return fmt.Sprintf("%s%04d:%06d", prefix, worker, cycle) }
	}
	var used []string
	for w := range 1024 {
		used = append(used, fmt.Sprintf("%s%04d", prefix, w))
	}
	return func(worker, _ int) string { return used[worker] }
}

// untilHeld acquires by a library that gives up by itself, as its user would:
// again and again.
func untilHeld(ctx context.Context, try func() error, given func(error) bool) error {
	for {
		err := try()
		if err == nil || ctx.Err() != nil || !given(err) {
			return errors.Join(err, ctx.Err())
		}
	}
}

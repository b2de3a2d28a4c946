// Package rwtest lets readers and writers contend for one name at random, over
// any stores, and checks that a reader never sees a writer.
package rwtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/quorumlock/quorum"
)

// Stats is how often what was done.
type Stats struct {
	Steps, Acquired, Promoted, Demoted, Refused int
}

// Steps returns how many steps a test over real servers takes: few, or what the
// environment variable QUORUM_RW_STEPS says; and a bound on their time, which is
// generous, since the machine may be busy.
func Steps(few int) (steps int, limit time.Duration) {
	steps = few
	if n, err := strconv.Atoi(os.Getenv("QUORUM_RW_STEPS")); err == nil {
		steps = n
	}
	return steps, time.Minute + time.Duration(steps)*50*time.Millisecond
}

// trial is one run.
type trial struct {
	key  string
	last time.Time

	mu    sync.Mutex
	left  int // steps
	stats Stats
	now   map[*quorum.Lease]quorum.Mode // who may believe to hold, and as what
	any   int64                         // the highest token so far
	wrote int64                         // and the highest of a writer
	err   error
}

// Run lets readers and writers take steps at random, so many in all or until
// limit is over. Each has a Locker that locker makes.
func Run(ctx context.Context, locker func() *quorum.Locker, readers, writers, steps int, limit time.Duration, seed uint64) (Stats, error) {
	t := &trial{key: "shared", last: time.Now().Add(limit), left: steps, now: map[*quorum.Lease]quorum.Mode{}}
	var all sync.WaitGroup
	for i := range readers + writers {
		a := &actor{t: t, locks: locker(), rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		if i < readers {
			a.options = []quorum.Option{quorum.Shared()}
		}
		all.Go(func() {
			for ctx.Err() == nil && t.more() {
				a.step(ctx)
			}
			a.release(ctx)
		})
	}
	all.Wait()
	return t.stats, t.err
}

func (t *trial) more() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left--
	t.stats.Steps++
	return t.left >= 0 && t.err == nil && time.Now().Before(t.last)
}

func (t *trial) fail(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.wrong(format, args...)
}

// wrong keeps the first thing that went wrong. The caller holds mu.
func (t *trial) wrong(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

// is says that lease holds in mode from now on.
func (t *trial) is(lease *quorum.Lease, mode quorum.Mode) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.now[lease] = mode
	for other, its := range t.now {
		if other != lease && (mode == quorum.ModeExclusive || its == quorum.ModeExclusive) && lease.Err() == nil && other.Err() == nil {
			t.wrong("%s with token %d and %s with token %d both hold", mode, lease.Token(), its, other.Token())
		}
	}
}

func (t *trial) isOver(lease *quorum.Lease) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.now, lease)
}

// before returns what the token of an acquisition that begins now must exceed.
func (t *trial) before(mode quorum.Mode) int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mode == quorum.ModeShared {
		return t.wrote
	}
	return t.any
}

func (t *trial) got(lease *quorum.Lease, mode quorum.Mode, least int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	token := lease.Token()
	if token <= least {
		t.wrong("%s got token %d, and %d was held before it asked", mode, token, least)
	}
	if t.any = max(t.any, token); mode == quorum.ModeExclusive {
		t.wrote = max(t.wrote, token)
	}
}

// actor is one reader or writer.
type actor struct {
	t       *trial
	locks   *quorum.Locker
	options []quorum.Option
	rng     *rand.Rand
	lease   *quorum.Lease
}

func (a *actor) step(ctx context.Context) {
	switch {
	case a.lease == nil:
		a.acquire(ctx)
	case a.rng.IntN(3) == 0:
		a.release(ctx)
	case a.rng.IntN(3) == 0:
		if err := a.lease.Extend(ctx, 10*time.Second); err != nil {
			a.release(ctx)
		}
	case a.lease.Mode() == quorum.ModeShared:
		a.promote(ctx)
	default:
		a.demote(ctx)
	}
}

func (a *actor) acquire(ctx context.Context) {
	mode := quorum.ModeExclusive
	if len(a.options) > 0 {
		mode = quorum.ModeShared
	}
	least := a.t.before(mode)
	lease, err := a.locks.Acquire(ctx, a.t.key, append(a.options[:len(a.options):len(a.options)], quorum.Wait(50*time.Millisecond))...)
	switch {
	case err == nil:
		a.lease = lease
		a.t.got(lease, mode, least)
		a.t.is(lease, mode)
		a.t.count(&a.t.stats.Acquired)
	case errors.Is(err, quorum.ErrHeld):
		a.t.count(&a.t.stats.Refused)
	case ctx.Err() == nil && !errors.Is(err, quorum.ErrNoQuorum) && !errors.Is(err, quorum.ErrExpired): // of a busy machine
		a.t.fail("acquire: %w", err)
	}
}

func (a *actor) promote(ctx context.Context) {
	least := a.t.before(quorum.ModeExclusive)
	lease, err := a.lease.Promote(ctx)
	if err != nil {
		a.t.count(&a.t.stats.Refused)
		if !errors.Is(err, quorum.ErrHeld) {
			a.release(ctx)
		}
		return
	}
	a.t.isOver(a.lease)
	a.lease = lease
	a.t.got(lease, quorum.ModeExclusive, least)
	a.t.is(lease, quorum.ModeExclusive)
	a.t.count(&a.t.stats.Promoted)
}

func (a *actor) demote(ctx context.Context) {
	a.t.is(a.lease, quorum.ModeShared) // before the first request leaves
	if err := a.lease.Demote(ctx); err != nil {
		a.release(ctx)
		return
	}
	a.t.count(&a.t.stats.Demoted)
}

func (a *actor) release(ctx context.Context) {
	if a.lease == nil {
		return
	}
	a.t.isOver(a.lease)
	if err := a.lease.Release(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, quorum.ErrLost) && !errors.Is(err, quorum.ErrNoQuorum) {
		a.t.fail("release: %w", err)
	}
	a.lease = nil
}

func (t *trial) count(n *int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	*n++
}

package quorum

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// watch keeps a lease until forget. It reports false when the Locker is closed
// and the lease is new.
func (l *Locker) watch(lease *Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.keep(lease)
	return true
}

// keep puts a lease on the list, unless it is there. The caller holds mu, as of
// drop.
func (l *Locker) keep(lease *Lease) {
	if lease.place == 0 {
		l.live = append(l.live, lease)
		lease.place = int32(len(l.live))
	}
}

// drop takes a lease off the list. The last one gets its place.
func (l *Locker) drop(lease *Lease) {
	if at, end := lease.place, len(l.live)-1; at > 0 {
		last := l.live[end]
		l.live[at-1], last.place = last, at
		l.live[end], l.live, lease.place = nil, l.live[:end], 0
	}
}

func (l *Locker) forget(lease *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(lease)
	if l.closed && len(l.live) == 0 {
		l.closeIdle()
	}
}

// replace keeps a lease that carries another one on, also while closing: there
// is no moment in which neither is kept.
func (l *Locker) replace(old, heir *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(heir)
	l.drop(old)
}

func (l *Locker) closeIdle() {
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
}

// Close ends the Locker: whoever waits gets [ErrClosed], leases that are held
// are lost to their holders with reason closed and given back, roll-backs are
// finished, and what [Open] made is closed. It returns when that is done or ctx
// ends, and then names the locks of which some store could not be told; they free
// themselves there at their TTL. The error matches [ErrNoQuorum] where too few
// stores were told, so that a lock is not free before. Closed once, it stays closed; Close again waits for
// the same end.
func (l *Locker) Close(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return &OpError{Op: "close", reasons: []error{err}}
	}
	l.mu.Lock()
	if !l.closed {
		close(l.closing)
	}
	l.closed = true
	leases := slices.Clone(l.live)
	if len(leases) == 0 {
		l.closeIdle()
	}
	l.mu.Unlock()
	slices.SortFunc(leases, func(a, b *Lease) int { return strings.Compare(a.Key(), b.Key()) })
	for _, lease := range leases {
		lease.over()
	}
	l.giveBack(ctx, leases)
	var errs []error
	select {
	case <-l.idle: // also when ctx has ended as well
	default:
		select {
		case <-l.idle:
		case <-ctx.Done():
			errs = append(errs, ctx.Err())
		}
	}
	l.keeper.close()
	l.crew.close()
	l.hub.close(ctx)
	for _, lease := range leases {
		errs = append(errs, lease.leftBehind())
	}
	return errors.Join(append(errs, l.set.Close())...)
}

// giveBack releases what is held, as many at a time as may be released by
// others. When no release has ended for as long as a call may take, or the
// caller waits no longer, the rest is sent at once: the stores hang, and what
// could be given back is not to wait for what cannot.
func (l *Locker) giveBack(ctx context.Context, leases []*Lease) {
	turns := true
	for _, lease := range leases {
		if turns {
			_, err := l.releases.enter(ctx, l.callLimit(&l.def), nil)
			turns = err == nil
		}
		lease.shut(turns)
	}
}

// over ends a lease for whoever waits for it or holds it, because its Locker
// closes. The stores are told by shut.
func (l *Lease) over() {
	var cause error
	l.d.do(func(now clock.Instant) {
		l.m.Cancel(now, core.EndClosed)
		if l.m.Stage() == core.Holding {
			cause = l.lost(LostClosed)
		}
	})
	if cause != nil {
		l.end(cause)
	}
}

// shut gives a lease back that is over. placed says that it has a place among
// those that are given back, until its release is answered.
func (l *Lease) shut(placed bool) {
	l.d.do(func(now clock.Instant) {
		switch {
		case l.m.Shut(now):
			l.d.owner.(*Lease).leaves = placed // of the one that carries it on, should it have been promoted meanwhile
		case placed:
			l.locker.releases.leave() // another Close may have given it one, which its release ends
		}
	})
}

// left ends the place of a lease that Close gives back, if it has one. The caller
// holds d.mu.
func (l *Lease) left() {
	if l.leaves {
		l.leaves = false
		l.locker.releases.leave()
	}
}

// errNotTold is of a lock that a quorum gave back: its name is free.
var errNotTold = errors.New("not every store could be told that it is free")

// leftBehind says whether the lock may still stand in a store.
func (l *Lease) leftBehind() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	switch told, _, quiet := l.m.Quorum().Releases(); {
	case quiet && l.m.Quorum().Leftovers() == 0:
		return nil
	case l.d.set.rule.Met(told):
		return l.opError("close", errNotTold)
	}
	return l.opError("close", ErrNoQuorum)
}

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
	l.live[lease] = struct{}{}
	return true
}

func (l *Locker) forget(lease *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, lease)
	if l.closed && len(l.live) == 0 {
		l.closeIdle()
	}
}

// replace keeps a lease that carries another one on, also while closing: there
// is no moment in which neither is kept.
func (l *Locker) replace(old, heir *Lease) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.live, old)
	l.live[heir] = struct{}{}
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
// ends, and then names the locks that could not be given back; they free
// themselves at their TTL. Closed once, it stays closed; Close again waits for
// the same end.
func (l *Locker) Close(ctx context.Context) error {
	l.mu.Lock()
	if !l.closed {
		close(l.closing)
	}
	l.closed = true
	var leases []*Lease
	for lease := range l.live {
		leases = append(leases, lease)
	}
	if len(leases) == 0 {
		l.closeIdle()
	}
	l.mu.Unlock()
	slices.SortFunc(leases, func(a, b *Lease) int { return strings.Compare(a.key, b.key) })
	for _, lease := range leases {
		lease.shut()
	}
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

// shut ends a lease for its locker's close.
func (l *Lease) shut() {
	l.d.do(func(now clock.Instant) {
		l.m.Cancel(now, core.EndClosed)
		l.m.Shut(now)
	})
}

// leftBehind says whether the lock may still stand in a store.
func (l *Lease) leftBehind() error {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	if _, _, quiet := l.m.Quorum().Releases(); quiet && l.m.Quorum().Leftovers() == 0 {
		return nil
	}
	return l.opError("close", ErrNoQuorum)
}

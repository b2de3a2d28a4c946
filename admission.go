package quorum

import (
	"context"
	"fmt"
	"time"
)

// admission bounds how many acquisitions ask the stores at a time, in the order
// in which they came. A process that starts more than its stores and its own
// CPU can carry would otherwise spend its calls' limits on waiting for itself:
// calls then end before they are answered, and all that was asked is asked
// again. Who waits here has asked nobody, so no limit of a call or of an attempt
// runs yet.
//
// A place is held for the first attempt alone. Later ones come from waiters, of
// whom one a key asks at a time, after a pause.
type admission chan struct{}

// enter waits for a place until ctx ends, wait is over (below 0 is never; 0 is
// a single attempt, which may wait for its turn), or closing is closed. It
// returns what is left of wait.
func (a admission) enter(ctx context.Context, wait time.Duration, closing <-chan struct{}) (time.Duration, error) {
	select {
	case a <- struct{}{}:
		return wait, nil
	default:
	}
	began := time.Now()
	var over <-chan time.Time
	if wait > 0 {
		limit := time.NewTimer(wait)
		defer limit.Stop()
		over = limit.C
	}
	select {
	case a <- struct{}{}: // a channel serves who waits in order
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-closing:
		return 0, ErrClosed
	case <-over:
		return 0, fmt.Errorf("gave up after waiting %v for one of the %d acquisitions under way in this process to end: %w",
			wait, cap(a), context.DeadlineExceeded)
	}
	if wait > 0 {
		wait = max(wait-time.Since(began), 1)
	}
	return wait, nil
}

func (a admission) leave() { <-a }

// admitted ends the place of a lease, if it has one. The caller holds d.mu.
func (l *Lease) admitted() {
	if l.taking != nil && l.taking.placed {
		l.taking.placed = false
		l.locker.admission.leave()
	}
}

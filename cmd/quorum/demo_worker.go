package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

const (
	// demoMargin is how early a worker stops believing, as quorum run does for
	// a command: it covers a goroutine that is woken late on a busy machine.
	demoMargin = demoTTL / 4
	// demoTry is how long one attempt waits before it is counted and told.
	demoTry = 2 * time.Second
)

// worker takes the lock again and again, as a client of its own.
type worker struct {
	*demo
	number int
	locker *quorum.Locker
	random *rand.Rand
}

func (w *worker) run(ctx context.Context) {
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
		defer cancel()
		_ = w.locker.Close(closing)
	}()
	for ctx.Err() == nil {
		began := time.Now()
		lease, err := w.locker.Acquire(ctx, demoKey, quorum.Wait(demoTry))
		switch {
		case err == nil:
			w.hold(ctx, lease, time.Since(began))
		case ctx.Err() != nil || errors.Is(err, quorum.ErrHeld):
		case errors.Is(err, quorum.ErrMismatch):
			w.fail(err) // waiting ends no mismatch
		default:
			w.guard.outage()
			w.show.event("worker %d got no quorum: %s", w.number, strings.TrimPrefix(err.Error(), "quorum: "))
			pause(ctx, 100*time.Millisecond)
		}
	}
}

// hold works inside the validity of the lease: from 50 to 250 ms, and now and
// then longer than the TTL, so that renewal is seen.
func (w *worker) hold(ctx context.Context, lease *quorum.Lease, waited time.Duration) {
	work := 50*time.Millisecond + time.Duration(w.random.Int64N(int64(200*time.Millisecond)))
	if w.random.IntN(10) == 0 {
		work += demoTTL
	}
	if lease.Remaining() > demoMargin {
		w.guard.enter(w.number, lease.Token())
		w.show.holds(w.number, lease, waited)
		lost := !workOn(ctx, lease, work)
		w.guard.leave(w.number)
		if lost {
			w.guard.lost()
			w.show.event("worker %d lost the lock, token %d: %v", w.number, lease.Token(), lease.Err())
		}
	}
	_ = lease.Release(ctx) // a store that cannot be told frees the lock at the TTL
	w.show.free(w.number)
	pause(ctx, time.Duration(w.random.Int64N(int64(200*time.Millisecond))))
}

// workOn returns true when the work was done and false when the validity came
// near its end.
func workOn(ctx context.Context, lease *quorum.Lease, work time.Duration) bool {
	done := time.After(work)
	for {
		left := lease.Remaining() - demoMargin
		if left <= 0 {
			return false
		}
		select {
		case <-done:
			return true
		case <-ctx.Done():
			return true
		case <-lease.Context().Done():
			return false
		case <-time.After(left):
		}
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

package filestore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// errLocked is a lock that another open file has.
var errLocked = errors.New("locked by another")

// One lock for the whole directory is held during each call, for some tens of
// microseconds, and never while a lease is held: a child that inherits nothing,
// a daemon that outlives its parent and a killed process keep no lease longer
// than its time. A process that is stopped within a call stops the store; the
// others' calls end with their contexts, and nothing of theirs was done.
//
// The lock file is never removed by the store. If somebody does, whoever gets
// the old file's lock sees that the directory has another, or none, and starts
// again with that.

// The kernel's lock is polled: a goroutine that waited in flock(2) could not
// be called back, and would outlive its call. Within a store only one
// goroutine polls, since the others wait for their turn.
const (
	pollFirst = 50 * time.Microsecond
	pollMost  = 5 * time.Millisecond
)

// hold takes the directory for one call. Its error means that nothing was
// done.
func (d *directory) hold(ctx context.Context, kind lockKind) (release func(), err error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for other calls of this process: %w", context.Cause(ctx))
	}
	defer func() {
		if err != nil {
			<-d.turn
		}
	}()
	if d.closed {
		return nil, os.ErrClosed
	}
	for range 3 {
		if err := d.await(ctx, d.lock, kind); err != nil {
			return nil, fmt.Errorf("waiting for the lock file %s: %w", d.lock.Name(), err)
		}
		current, err := d.current()
		if err == nil && current {
			return func() { _ = d.tryLock(d.lock, unlocked); <-d.turn }, nil
		}
		if err == nil {
			err = d.openLock() // closes the old one, and with it its lock
		}
		if err != nil {
			_ = d.tryLock(d.lock, unlocked)
			return nil, err
		}
	}
	return nil, fmt.Errorf("the lock file %s is replaced all the time", d.lock.Name())
}

// current reports whether the lock file in hand is the directory's, and the
// directory the path's. One that was moved away must not go on beside its
// successor.
func (d *directory) current() (bool, error) {
	if there, err := os.Lstat(d.path); err != nil || !os.SameFile(there, d.self) {
		return false, errReplaced
	}
	there, err := d.root.Lstat(lockName)
	return err == nil && os.SameFile(there, d.lockInfo), nil
}

// await takes a lock of f, for as long as ctx lasts.
func (d *directory) await(ctx context.Context, f *os.File, kind lockKind) error {
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err := d.tryLock(f, kind); !errors.Is(err, errLocked) {
			return err
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

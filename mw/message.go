// Package mw takes locks around what arrives: [Message] around the handling of
// a message, [HTTP] around that of a request. Neither ever takes an outage of
// the stores for "somebody else is at it".
package mw

import (
	"context"
	"errors"
	"fmt"

	"github.com/quorumlock/quorum"
)

// ErrBusy means that somebody else holds the lock of the message's key: give it
// back to the broker, to be delivered again (a negative acknowledgement with
// requeue). It matches [quorum.ErrHeld] too.
var ErrBusy = errors.New("mw: another handler is at this key")

// Busy says what becomes of a message whose key somebody else holds.
type Busy uint8

// The ways.
const (
	Requeue Busy = iota // return ErrBusy, so that it comes again
	Drop                // return nil, so that it is acknowledged unhandled: the holder does its work
	Wait                // wait for the lock as long as the context allows
)

// Handler handles a message. An error means that it was not handled.
type Handler[M any] func(ctx context.Context, message M) error

// Message wraps handlers so that of all messages with one key at most one is
// handled at a time, among all processes that lock in these stores.
//
// The handler's context ends when the lock is lost, with the [*quorum.LostError]
// as its cause, and with the context of the delivery. The wrapped handler
// returns the handler's error joined with a loss or a failed release: a message
// whose lock was lost half-way is never reported as handled. [quorum.ErrNoQuorum]
// means that too few stores answered and nothing was handled, whatever busy
// says. A key function's error is returned as it is and takes no lock.
//
// A token for fencing is that of the lease in the handler's context, see
// [Lease].
func Message[M any](locks *quorum.Locker, key func(M) (string, error), busy Busy, options ...quorum.Option) func(Handler[M]) Handler[M] {
	if busy != Wait {
		options = append(options[:len(options):len(options)], quorum.Wait(0))
	}
	return func(handle Handler[M]) Handler[M] {
		return func(ctx context.Context, message M) error {
			name, err := key(message)
			if err != nil {
				return fmt.Errorf("mw: the message's key: %w", err)
			}
			began := false
			err = locks.Do(ctx, name, func(ctx context.Context, lease *quorum.Lease) error {
				began = true
				return handle(withLease(ctx, lease), message)
			}, options...)
			switch {
			case began || !errors.Is(err, quorum.ErrHeld):
				return err
			case busy == Drop:
				return nil
			}
			return errors.Join(ErrBusy, err)
		}
	}
}

type leaseKey struct{}

func withLease(ctx context.Context, lease *quorum.Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, lease)
}

// Lease returns the lease under which a handler runs, or nil outside of one.
func Lease(ctx context.Context) *quorum.Lease {
	lease, _ := ctx.Value(leaseKey{}).(*quorum.Lease)
	return lease
}

// Package watermillmw takes locks around the messages of a Watermill router: the
// rules of [mw.Message], as a middleware.
package watermillmw

import (
	"context"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/mw"
)

// Pause is for how long a message that is not handled is kept before it is given
// back: a broker delivers it again at once, and without a pause a held key would
// keep consumers and broker busy with each other.
const Pause = 250 * time.Millisecond

// Lock returns a middleware by which of all messages with one key at most one is
// handled at a time, among all processes that lock in these stores. key returns
// the lock's name, which is never empty.
//
// What becomes of a message whose key somebody else holds, busy says. By
// mw.Requeue it waits for the lock for [Pause], or what quorum.Wait among the
// options says, and is then given back to the broker: the router's negative
// acknowledgement. By mw.Drop it is acknowledged unhandled. By mw.Wait it waits
// until the subscription ends. Too few stores that answer are never taken for
// busy: the message is given back, whatever busy says, no earlier than Pause
// after it came. So is one without a key or whose lock was lost while it was
// handled.
//
// The message's context ends, inside the handler, when the lock is lost
// ([*quorum.LostError] as its cause) and with the delivery; [mw.Lease] finds the
// lease in it, with the token that fences what is written. The lock is given
// back before the router publishes what the handler returned and acknowledges
// the message.
//
// Add it before middlewares that take errors for failures of the handler, such
// as Retry or PoisonQueue, so that they do not see a message that was not
// handled.
func Lock(locks *quorum.Locker, key func(*message.Message) (string, error), busy mw.Busy, options ...quorum.Option) message.HandlerMiddleware {
	if busy == mw.Requeue {
		// To wait for a moment is the same to the broker as a pause, and better:
		// the lock may come free.
		busy, options = mw.Wait, append([]quorum.Option{quorum.Wait(Pause)}, options...)
	}
	wrap := mw.Message(locks, key, busy, options...)
	return func(next message.HandlerFunc) message.HandlerFunc {
		return func(msg *message.Message) (produced []*message.Message, err error) {
			handled := false
			pause := time.NewTimer(Pause)
			defer pause.Stop()
			err = wrap(func(ctx context.Context, msg *message.Message) (err error) {
				handled = true
				outer := msg.Context()
				msg.SetContext(ctx)
				defer msg.SetContext(outer) // ours ends with the lock
				produced, err = next(msg)
				return err
			})(msg.Context(), msg)
			if err == nil {
				return produced, nil
			}
			if !handled {
				select {
				case <-pause.C:
				case <-msg.Context().Done():
				}
			}
			return nil, err
		}
	}
}

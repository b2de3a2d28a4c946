package main

import (
	"context"
	"errors"
	"time"

	"github.com/quorumlock/quorum"
)

// moment is what a store that does not answer is given once a quorum knows that
// the lock is free: the call under way there may take a second, and the release
// that follows it another.
const moment = 2 * time.Second

// giveBack releases a lock, and says for how long what is left of it may keep
// quorum from ending. Nobody waits for a store beyond those that make the name
// free, so a command does not pay for one that hangs; a lock that too few were
// told of is worth the tries of the library.
func giveBack(ctx context.Context, lease interface{ Release(context.Context) error }) (limit time.Duration, err error) {
	began := time.Now()
	if err = lease.Release(ctx); errors.Is(err, quorum.ErrNoQuorum) {
		return closeLimit, err
	}
	return max(moment-time.Since(began), 0), err
}

func closeWithin(ctx context.Context, locker *quorum.Locker, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return locker.Close(ctx)
}

// tellLeft tells what closing could not give back, a line for each store that was
// not told; where no store is to be named, it tells the error itself.
func (n *notices) tellLeft(closing error) {
	joined, ok := closing.(interface{ Unwrap() []error })
	if !ok {
		return // nil: Close joins what it has to say
	}
	named := false
	for _, err := range joined.Unwrap() {
		op := (*quorum.OpError)(nil)
		if !errors.As(err, &op) {
			continue
		}
		for _, v := range op.Votes {
			if v.Outcome == quorum.OutcomeUnknown || v.Outcome == quorum.OutcomeUndelivered {
				n.unreleased(op.Key, v.Store, v.Err)
				named = true
			}
		}
	}
	if !named {
		say(n.stderr, "%v", closing)
	}
}

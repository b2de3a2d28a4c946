package quorum

import (
	"context"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// WaitKind says what an Acquire that is refused leaves in the store, so that who
// asked is woken and need not poll.
type WaitKind uint8

// The ways to wait.
const (
	WaitNone  = WaitKind(core.WaitNone)  // leaves nothing, and passes nobody who is queued
	WaitWatch = WaitKind(core.WaitWatch) // leaves a mark: the store tells its watchers when the name falls free
	WaitTake  = WaitKind(core.WaitTake)  // an entry in the store's queue; granted when the name is free and the entry its head
	WaitQueue = WaitKind(core.WaitQueue) // an entry in the queue, and never a grant: an older attempt's vote is given up
)

// String names the way in lower case.
func (w WaitKind) String() string { return core.WaitKind(w).String() }

// Watcher is the ability to tell at once that a name changed, so that whoever
// waits for it need not poll. A wake is a hint and no vote: it may be lost,
// doubled or wrong, and waiters poll beneath it. Find it with [As].
type Watcher interface {
	// Watch tells of r.Key until ctx ends, and then returns nil; an error means
	// that it cannot go on, and that wakes may have been missed. Only Key, Set,
	// MaxTTL and Limit of r count. tell must not block. The watches of one
	// store share what connection they can. A store that needs a mark to be
	// left tells only what happens after an Acquire with [WaitWatch].
	Watch(ctx context.Context, r Request, tell func(Wake)) error
}

// WakeKind says what a [Wake] tells.
type WakeKind uint8

// The kinds of wake.
const (
	WakeStarted = WakeKind(core.WakeStarted) // the watch stands; what happens from now on is told
	WakeChanged = WakeKind(core.WakeChanged) // a vote ended: released, expired, forced or deleted by hand; may be left out while others stand in line
	WakeTurn    = WakeKind(core.WakeTurn)    // an owner's turn in the queue has come: Owner, Counter
	WakeNext    = WakeKind(core.WakeNext)    // an owner is next but one: it looks again after After
)

// String names the kind in lower case.
func (k WakeKind) String() string { return core.WakeKind(k).String() }

// Wake is one hint of a [Watcher]. Fields may be added.
type Wake struct {
	Kind    WakeKind
	Owner   string        // of a turn or a next: the owner's [Owner.Digest]
	Counter int64         // of a turn: the name's counter
	After   time.Duration // of a next
}

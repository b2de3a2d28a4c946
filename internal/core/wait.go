package core

import "time"

// WaitKind says what an Acquire that is refused leaves in the store.
type WaitKind uint8

// The ways to wait.
const (
	WaitNone  WaitKind = iota // nothing; it passes nobody who is queued
	WaitWatch                 // a mark: the store tells its watchers when the name falls free
	WaitTake                  // an entry in the queue; granted when the name is free and the entry its head
	WaitQueue                 // an entry in the queue, and never a grant
)

// Queued reports whether a refused request stands in the store's queue.
func (w WaitKind) Queued() bool { return w == WaitTake || w == WaitQueue }

func (w WaitKind) String() string { return [...]string{"none", "watch", "take", "queue"}[w] }

// KeepMax bounds how long an entry of a queue lasts without another request,
// so that what a dead client left stands in nobody's way for longer.
const KeepMax = time.Minute

// WakeKind says what a store told a waiter.
type WakeKind uint8

// The kinds of wake.
const (
	WakeStarted WakeKind = iota // the watch stands
	WakeChanged                 // a vote ended
	WakeTurn                    // the owner's turn has come
	WakeNext                    // the owner is next but one
	WakeEnded                   // the watch stands no more; drivers tell it, and no store
)

func (k WakeKind) String() string {
	return [...]string{"started", "changed", "turn", "next", "ended"}[k]
}

// Wake is what a store tells. It is a hint: it may be lost, doubled or wrong.
type Wake struct {
	Kind    WakeKind
	Owner   Owner         // of a turn or a next: whom it is for
	Counter int64         // of a turn: the name's counter
	After   time.Duration // of a next: when to look again
}

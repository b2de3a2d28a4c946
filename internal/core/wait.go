package core

// WaitKind says what an Acquire that is refused leaves in the store.
type WaitKind uint8

// The ways to wait.
const (
	WaitNone  WaitKind = iota // nothing; it passes nobody who is queued
	WaitWatch                 // a mark: the store tells its watchers when the name falls free
	WaitTake                  // an entry in the queue; granted when the name is free and the entry its head
	WaitQueue                 // an entry in the queue, and never a grant
)

func (w WaitKind) String() string { return [...]string{"none", "watch", "take", "queue"}[w] }

// WakeKind says what a store told a waiter.
type WakeKind uint8

// The kinds of wake.
const (
	WakeStarted WakeKind = iota // the watch stands
	WakeChanged                 // a vote ended
	WakeTurn                    // the owner's turn has come
	WakeNext                    // the owner is next but one
)

func (k WakeKind) String() string { return [...]string{"started", "changed", "turn", "next"}[k] }

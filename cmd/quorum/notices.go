package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorum"
)

// notices turns events of the library into lines for people. Waiting is told
// by a goroutine of its own, since it asks the stores who holds the lock and
// an observer must return soon.
type notices struct {
	stderr  io.Writer
	waiting chan quorum.Event
	done    sync.WaitGroup
	said    sync.Map     // what is said once
	failing atomic.Int64 // when a failed renewal was told, as Unix nanoseconds; 0 is that they succeed
	local   string       // the directory that is used because no store is named
	failures
}

func newNotices(stderr io.Writer, local string) *notices {
	return &notices{stderr: stderr, local: local, waiting: make(chan quorum.Event, 1)}
}

// observe is given to the Locker.
func (n *notices) observe(e quorum.Event) {
	switch e.Kind {
	case quorum.EventWaiting:
		select {
		case n.waiting <- e:
		default: // the last one is still being told
		}
	case quorum.EventRenewed:
		n.failing.Store(0)
	case quorum.EventRenewFailed:
		if n.recently(time.Now()) {
			return
		}
		say(n.stderr, "%q could not be renewed, %v of validity left: %v", e.Key, e.Left.Round(time.Millisecond), e.Err)
	case quorum.EventReleaseFail:
		n.unreleased(e.Key, e.Store, e.Err)
	case quorum.EventStoreFailed:
		n.note(e.Store, e.Err)
	case quorum.EventTwin, quorum.EventAdvice:
		n.once("warning: store %s: %v", e.Store, e.Err)
	case quorum.EventRefilled:
		if e.Err != nil {
			n.once("warning: store %s: %v", e.Store, e.Err)
		}
	}
}

// renewAgain is how often failing renewals are told.
const renewAgain = 10 * time.Second

// recently reports whether a failed renewal was told a moment ago, and if not
// notes that one is told now.
func (n *notices) recently(now time.Time) bool {
	last := n.failing.Load()
	if last != 0 && now.Sub(time.Unix(0, last)) < renewAgain {
		return true
	}
	return !n.failing.CompareAndSwap(last, now.UnixNano())
}

// unreleased says once of a store that it was not told that a lock is free, as
// an event and the end of the Locker may both tell.
func (n *notices) unreleased(key, store string, why error) {
	if _, again := n.said.LoadOrStore([2]string{key, store}, true); !again {
		say(n.stderr, "%q could not be released on store %s, which frees it at the end of its TTL: %v", key, store, why)
	}
}

func (n *notices) once(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if _, again := n.said.LoadOrStore(text, true); !again {
		say(n.stderr, "%s", text)
	}
}

// tell says who is waited for until ctx ends; then done is.
func (n *notices) tell(ctx context.Context, locker *quorum.Locker) {
	n.done.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case e := <-n.waiting:
				say(n.stderr, "waiting for %q for %v: %s", e.Key, e.Took.Round(time.Second), n.reason(ctx, locker, e))
				if inQuarantine(e.Votes) {
					n.once(quarantineHint)
				}
				if n.local != "" {
					n.once("no store is named, so this is about %s on this machine alone", n.local)
				}
			}
		}
	})
}

// reason says what a wait is for: who holds the lock and for how long, or what
// keeps the stores from answering.
func (n *notices) reason(ctx context.Context, locker *quorum.Locker, e quorum.Event) string {
	if !errors.Is(e.Err, quorum.ErrHeld) {
		return fmt.Sprintf("%s: %s", cause(e.Err), n.text(e.Votes))
	}
	who := e.Label
	if who == "" {
		who = "somebody"
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	status, err := locker.Inspect(ctx, e.Key)
	if err != nil {
		return "held by " + who
	}
	for _, s := range status.Stores {
		for _, h := range s.State.Holders {
			if h.Label == e.Label && !h.Since.IsZero() {
				return fmt.Sprintf("held by %s for %v", who, time.Since(h.Since).Round(time.Second))
			}
		}
	}
	return "held by " + who
}

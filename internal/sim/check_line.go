package sim

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// What is looked at where clients wait in the stores' queues.

// checkWait looks, when a wait is over, whether it was too long.
func (w *World) checkWait(l *Lease) {
	if took := w.now - l.began; w.cfg.Longest > 0 && took > w.cfg.Longest {
		w.violate(Starved, l.key, "lease %d of client %d waited for %v", l.serial, l.c.id, took)
	}
}

// checkPolls looks whether a lease that is done asked too often how its line
// stands.
func (w *World) checkPolls(l *Lease) {
	waited := w.now - l.began
	if most := (2 + int(waited/(50*time.Millisecond))) * 2 * w.cfg.Stores; l.polls > most {
		w.violate(Messages, l.key, "lease %d asked %d times how its line stands: at most %d in %v", l.serial, l.polls, most, waited)
	}
}

// stands reports whether any attempt of the lease has a place in a store's queue.
func (l *Lease) stands(n *node) bool {
	kept := n.store.Look(l.c.w.keys[l.key].text)
	return kept != nil && slices.ContainsFunc(kept.Queue, func(e model.Entry) bool {
		return e.Owner.ID == l.id && e.Until > n.time(l.c.w.now)
	})
}

// late reports whether a request was on its way for about as long as a tombstone
// lasts.
func (w *World) late(sent time.Duration) bool { return w.now > sent+w.cfg.MaxTTL-w.cfg.MaxTTL/10 }

// begins reports whether a request is the first of an attempt. One that leaves
// by the event that failed its attempt is none, although the lease stands in
// line with the next already.
func (l *Lease) begins(r *core.Request, before, stage core.Stage) bool {
	attempt := l.m.Quorum().Attempt()
	yielded := r.Owner.Attempt != attempt && l.c.w.cfg.Bugs&core.BugOneOwner == 0
	return attempt != l.attempt && !yielded || before == core.Waiting && stage == core.Trying
}

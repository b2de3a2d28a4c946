package model

import "github.com/quorumlock/quorum/internal/core"

// Resume says that the server began another life in which no vote of the one
// before counts, and in which the counters of names, but not r itself, may be
// older than they were. No counter had outgrown the step in r, see cover, so
// from the next step on every name's tokens are above all that were given.
//
// A quarantine goes on, and may be left at once: no holder is left that it
// could protect a rival from.
func (r *Record) Resume(run string, now Time) {
	r.Run = run
	r.Step, r.Moved = max(r.Step+1, now.step()), now
	r.Base = max(r.Base, r.start())
	r.End = min(r.End, now)
}

// Void ends whatever an earlier life of the server promised of n, and keeps
// its counter and that its holders did not release.
func (n *Name) Void(rec *Record, now Time) {
	for i := range n.Votes {
		n.Votes[i].Until = now
	}
	n.Tombs, n.Forced, n.Queue = nil, nil, nil
	n.Keep = now.Add(core.CounterRest)
	n.settle(rec, 0, now)
}

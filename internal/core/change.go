package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// change is what a promotion has to remember of the lease that it started from.
type change struct {
	votes Set   // of the reader's lease
	token int64 // of it
}

// Mode returns with whom the lease is shared: that of a promotion changes when
// it has won, and that of a demotion before its first request leaves, because a
// writer must not believe that it is alone once a store may let readers in.
func (q *Quorum) Mode() Mode {
	if q.Promoting() {
		return Shared
	}
	if q.cfg.Bugs.has(BugDemoteLate) && q.round.active && q.which(func(s *slot) bool { return s.busy && s.call.demotes }) != 0 {
		return Exclusive
	}
	return q.mode
}

// Promoting reports whether a promotion is under way.
func (q *Quorum) Promoting() bool { return q.change != nil }

// Readers returns how many readers the answers of the last round told of, the
// lease itself included.
func (q *Quorum) Readers() int { return int(q.round.readers) }

// Promote asks every vote of a reader's lease to become a writer's, in an
// attempt of its own and with a new token. It must be called only while held as
// a reader, with validity left and no round active. The reader's lease stands
// until the promotion has won, and after it has failed.
func (q *Quorum) Promote(now clock.Instant) {
	q.change = &change{votes: q.Votes(), token: q.high}
	q.kind, q.mode = Convert, Exclusive
	q.attempt++
	q.phase, q.failure, q.start = Asking, NoFailure, now
	q.high++ // the floor: a promotion has a token above the reader's
	for i := range q.slots {
		s := &q.slots[i]
		s.reset()
		s.vote = refused // nobody else is asked: who has no vote has nothing to convert
		if q.change.votes.Has(i) {
			s.vote, s.want = pending, wantAcquire
			s.patience = now.Add(q.cfg.CallLimit)
			q.pump(now, i)
		}
	}
	q.ask(now)
}

// undo goes back to the reader's lease after a promotion that failed: by a
// demotion of the attempt after at every vote of the lease, asked or not, so
// that all carry one attempt again. Never by a release, which would take votes
// that the reader counts on.
func (q *Quorum) undo(now clock.Instant, why Failure) {
	from := q.change
	q.failure, q.high, q.change = why, from.token, nil
	for i := range q.slots {
		s := &q.slots[i]
		gone := s.vote == refused && s.outcome == NotHeld
		if from.votes.Has(i) && !gone {
			s.vote, s.token = granted, q.high
		} else {
			s.vote = refused
		}
	}
	if q.cfg.Bugs.has(BugUndoByRelease) {
		q.phase = Held
		q.releaseAll(now)
		return
	}
	q.Demote(now, q.ttl)
}

// Demote starts a round in which every vote becomes a reader's and lasts ttl
// from now. The token stays. It must be called only while held, with validity
// left and no round active; a round that did not win is repeated by another
// call.
func (q *Quorum) Demote(now clock.Instant, ttl time.Duration) {
	q.attempt++
	q.mode, q.phase = Shared, Held
	q.round = round{n: q.round.n + 1, active: true, start: now, ttl: ttl}
	for i := range q.slots {
		s := &q.slots[i]
		if s.want = wantNothing; s.vote == granted {
			s.want = wantDemote
			q.pump(now, i)
		}
	}
	q.settleRound(now)
}

// demoted takes the answer to a demotion. Only the lease's own token will do: a
// vote that a failed promotion converted has a higher one, which other readers
// and writers may have seen.
func (q *Quorum) demoted(now clock.Instant, i int, c call, a Answer) {
	s := &q.slots[i]
	q.note(i, a)
	q.extended(now, i, c, a)
	if s.vote == refused && a.Outcome == Granted && c.attempt == q.attempt && q.phase == Held {
		s.stale, s.shut = true, true
	}
}

// dropStale gives back votes that a demotion lost, once a round has won without
// them. Before that the holder believes by a round that counted them: to give
// one back then lets a writer in beside it.
func (q *Quorum) dropStale(now clock.Instant) {
	for i := range q.slots {
		if s := &q.slots[i]; s.stale && !q.cfg.Member {
			s.stale = false
			s.due(now, q.cfg.ReleaseLimit)
			q.pump(now, i)
		}
	}
}

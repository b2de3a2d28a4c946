package quorum

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// verb drives one verb of a composite that is called as a store. It lives as
// long as the call; what it leaves in flight ends by the calls' own limits.
type verb struct {
	*driver
	q       *core.Quorum
	decided func() bool
	answers []core.Answer // of each member, the last
	done    chan struct{}
	over    bool
}

// drive prepares a verb.
func (c *CombinedStore) drive(q *core.Quorum) *verb {
	v := &verb{q: q, answers: make([]core.Answer, len(c.members)), done: make(chan struct{})}
	v.driver = newDriver(context.Background(), q, v, &means{
		set: c, clock: clock.Go(), health: c.health, heard: func(i int, a core.Answer) { v.answers[i] = a },
	})
	return v
}

// settled looks after each event whether the verb is decided.
func (v *verb) settled(clock.Instant) func() {
	if !v.over && v.decided() {
		v.over = true
		close(v.done)
	}
	return nil
}

// run carries an event to its decision, or to the end of the caller's context.
func (v *verb) run(ctx context.Context, r Request, event func(now clock.Instant), decided func() bool) error {
	v.decided = decided
	if err := alive(ctx); err != nil {
		return Undelivered(err) // no store is asked
	}
	if err := checkKey(r.Key, maxKey); err != nil {
		return Undelivered(err)
	}
	v.base = context.WithoutCancel(ctx)
	v.do(event)
	select {
	case <-v.done:
		return nil
	case <-ctx.Done():
		v.stop()
		return fmt.Errorf("%s: %w", v.set.Name(), ctx.Err())
	}
}

// look reads the outcome, and what else read does, under mu: calls may still be
// in flight.
func (v *verb) look(read func()) []Vote {
	v.mu.Lock()
	defer v.mu.Unlock()
	read()
	return v.votes(v.q.View)
}

func (v *verb) acquire(ctx context.Context, q *core.Quorum, r Request) (Grant, error) {
	err := v.run(ctx, r,
		func(now clock.Instant) { v.learn(now); q.BeginAs(now, r.Owner.Attempt, r.Floor) },
		func() bool { return q.Phase() != core.Asking })
	if err != nil {
		return Grant{}, err
	}
	var phase core.Phase
	var token int64
	var failure core.Failure
	votes := v.look(func() { phase, token, failure = q.Phase(), q.Token(), q.Failure() })
	if phase == core.Held {
		return v.grant(r, token, votes), nil
	}
	v.stop()
	return Grant{}, v.refusal(failure, votes)
}

func (v *verb) extend(ctx context.Context, q *core.Quorum, r Request) (Grant, error) {
	err := v.run(ctx, r,
		func(now clock.Instant) { q.ExtendAs(now, r.Owner.Attempt, r.Floor, r.TTL) },
		func() bool { active, won := q.Extending(); return won || !active })
	if err != nil {
		return Grant{}, err
	}
	var won, lost bool
	votes := v.look(func() {
		_, won = q.Extending()
		lost = q.Phase() == core.Lost
	})
	switch {
	case won:
		return v.grant(r, r.Floor, votes), nil
	case lost:
		return Grant{}, v.lost(votes)
	}
	return Grant{}, &noQuorumError{votes: votes}
}

// grant is what the members granted together. Readers may have come to one
// member and not yet to another, so the most that any has seen count.
func (v *verb) grant(r Request, token int64, votes []Vote) Grant {
	v.mu.Lock()
	defer v.mu.Unlock()
	g := Grant{Token: token, TTL: r.TTL, Mode: r.Mode, Votes: votes, Server: v.set.servers.all()}
	for _, a := range v.answers {
		if a.Outcome == core.Granted {
			g.Mode = min(g.Mode, Mode(a.Mode)) // exclusive if any member is
			g.Readers = max(g.Readers, a.Readers)
			g.Previous = max(g.Previous, Previous(a.Previous)) // expired, if any member saw that
		}
	}
	return g
}

// lost says why too few members still hold the name.
func (v *verb) lost(votes []Vote) error {
	refused := &RefusedError{Outcome: OutcomeNotHeld, Votes: votes, Reason: "too few members still hold it"}
	for _, vote := range votes {
		inner := (*RefusedError)(nil)
		switch {
		case !refusedAs(vote.Err, &inner):
		case inner.Outcome == OutcomeMismatch:
			return &RefusedError{Outcome: OutcomeMismatch, Votes: votes, Reason: inner.Reason}
		case inner.Forced:
			refused.Forced, refused.Label = true, inner.Label
		}
	}
	return refused
}

func (v *verb) release(ctx context.Context, q *core.Quorum, r Request) error {
	err := v.run(ctx, r,
		func(now clock.Instant) { q.ReleaseAs(now, r.Owner.Attempt) },
		func() bool { _, heard, _ := q.Releases(); return heard })
	if err != nil {
		return err
	}
	v.stop() // who called retries, at every member
	var answered core.Set
	votes := v.look(func() { answered, _, _ = q.Releases() })
	if answered != core.Full(len(v.set.members)) {
		return &noQuorumError{votes: votes, released: v.set.rule.Met(answered)}
	}
	for _, vote := range votes {
		if vote.Outcome == OutcomeGranted {
			return nil
		}
	}
	return &RefusedError{Outcome: OutcomeNotHeld, Clean: true, Votes: votes}
}

// refusal says why a composite did not grant. It is never clean, because
// members that granted are told by who called, not by the composite.
func (v *verb) refusal(why core.Failure, votes []Vote) error {
	refused := &RefusedError{Votes: votes, Server: v.set.servers.all()}
	quarantined, notHeld, rest := false, false, core.Full(len(votes))
	for i, vote := range votes {
		if vote.Outcome == OutcomeNotHeld || vote.Outcome == OutcomeContended {
			rest = rest.Without(i)
		}
		notHeld = notHeld || vote.Outcome == OutcomeNotHeld
		if inner := (*RefusedError)(nil); refusedAs(vote.Err, &inner) && inner.Left > refused.Left {
			refused.Label, refused.Left = inner.Label, inner.Left
		}
		quarantined = quarantined || vote.Outcome == OutcomeQuarantined
	}
	switch {
	case why == core.ByMismatch:
		refused.Outcome = OutcomeMismatch
	case why == core.ByHeld:
		refused.Outcome = OutcomeContended
	case quarantined:
		refused.Outcome = OutcomeQuarantined
	case notHeld && !v.set.rule.Met(rest):
		// A convert of votes that too few members have: a clear answer, since
		// those that are silent could not make up for them.
		refused.Outcome = OutcomeNotHeld
	default:
		return &noQuorumError{votes: votes}
	}
	return refused
}

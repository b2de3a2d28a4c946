package quorum

import (
	"errors"

	"github.com/quorumlock/quorum/internal/core"
)

// toCore is the request as the machines know it.
func toCore(r Request) core.Request {
	return core.Request{
		Kind: core.Kind(r.Kind), Mode: core.Mode(r.Mode), Order: core.Order(r.Order), Entomb: r.Entomb,
		Owner: core.Owner{ID: core.ID(r.Owner.ID), Attempt: r.Owner.Attempt},
		Key:   r.Key, Label: r.Label, TTL: r.TTL, Floor: r.Floor, Limit: r.Limit, MaxTTL: r.MaxTTL, Set: uint64(r.Set),
		Wait: core.WaitKind(r.Wait), Ticket: r.Ticket, Keep: r.Keep, Claim: r.Claim,
	}
}

// fromCore is the request as stores know it.
func fromCore(r core.Request) Request {
	return Request{
		Key: r.Key, Owner: Owner{ID: OwnerID(r.Owner.ID), Attempt: r.Owner.Attempt},
		Mode: Mode(r.Mode), Kind: Kind(r.Kind), TTL: r.TTL, Floor: r.Floor, Limit: r.Limit, MaxTTL: r.MaxTTL,
		Set: Fingerprint(r.Set), Entomb: r.Entomb, Label: r.Label, Order: Order(r.Order),
		Wait: WaitKind(r.Wait), Ticket: r.Ticket, Keep: r.Keep, Claim: r.Claim,
	}
}

// answerOf is a store's reply as the machines know it.
func answerOf(g Grant, err error) core.Answer {
	if err == nil {
		return core.Answer{
			Outcome: core.Granted, Mode: core.Mode(g.Mode), Previous: core.Previous(g.Previous),
			Token: g.Token, TTL: g.TTL, Readers: g.Readers, Server: g.Server, Ticket: g.Ticket,
		}
	}
	a := core.Answer{Outcome: core.Outcome(OutcomeOf(err))}
	if few := (*noQuorumError)(nil); errors.As(err, &few) {
		a.Enough = few.released
	}
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		a.Clean, a.Forced = refused.Clean, refused.Forced
		a.Token = refused.Counter
		a.Readers, a.Left, a.Label, a.Server = refused.Readers, refused.Left, refused.Label, refused.Server
		a.Ticket, a.Rank = refused.Ticket, refused.Rank
	}
	return a
}

// nestedVotes returns what the members of a composite answered.
func nestedVotes(g Grant, err error) []Vote {
	if err == nil {
		return g.Votes
	}
	if few := (*noQuorumError)(nil); errors.As(err, &few) {
		return few.votes
	}
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		return refused.Votes
	}
	return nil
}

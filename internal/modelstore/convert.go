package modelstore

import (
	"fmt"
	"unicode/utf8"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
)

const (
	maxKey   = 512 // bytes, when Limits names no bound
	maxLabel = 256 // bytes
)

// check says why a request cannot be taken, wrapped so that it counts as never
// sent: a store refuses on its own what its caller should have refused.
func (s *Store) check(verb core.Verb, r quorum.Request) error {
	longest := s.limits.MaxKey
	if longest == 0 {
		longest = maxKey
	}
	switch {
	case len(r.Key) < 1 || len(r.Key) > longest:
		return s.refused(fmt.Errorf("%w: %d bytes, where 1 to %d are allowed", quorum.ErrInvalidKey, len(r.Key), longest))
	case !utf8.ValidString(r.Key):
		return s.refused(fmt.Errorf("%w: %q is not UTF-8", quorum.ErrInvalidKey, r.Key))
	case hasNUL(r.Key):
		return s.refused(fmt.Errorf("%w: %q holds a NUL", quorum.ErrInvalidKey, r.Key))
	case len(r.Label) > maxLabel:
		return s.refused(fmt.Errorf("%w: a label of %d bytes, where at most %d are allowed", quorum.ErrInvalidOption, len(r.Label), maxLabel))
	case verb == core.Release:
		return nil
	case r.TTL <= 0 || r.TTL < s.limits.MinTTL || r.TTL > r.MaxTTL:
		return s.refused(fmt.Errorf("%w: %v for key %q does not lie between %v and MaxTTL, %v",
			quorum.ErrInvalidTTL, r.TTL, r.Key, s.limits.MinTTL, r.MaxTTL))
	case core.WaitKind(r.Wait).Queued() && !s.limits.Queues:
		return s.refused(fmt.Errorf("%w: it keeps no queue to wait in (wait %v)", quorum.ErrUnsupported, r.Wait))
	}
	return nil
}

func hasNUL(key string) bool {
	for i := range len(key) {
		if key[i] == 0 {
			return true
		}
	}
	return false
}

func (s *Store) refused(err error) error {
	return quorum.Undelivered(fmt.Errorf("store %s: %w", s.name, err))
}

// request is the one translation of a request.
func request(verb core.Verb, r quorum.Request) core.Request {
	return core.Request{
		Verb:   verb,
		Kind:   core.Kind(r.Kind),
		Mode:   core.Mode(r.Mode),
		Order:  core.Order(r.Order),
		Entomb: r.Entomb,
		Owner:  core.Owner{ID: core.ID(r.Owner.ID), Attempt: r.Owner.Attempt},
		Key:    r.Key,
		Label:  r.Label,
		TTL:    r.TTL,
		Floor:  r.Floor,
		Limit:  r.Limit,
		MaxTTL: r.MaxTTL,
		Set:    uint64(r.Set),
		Wait:   core.WaitKind(r.Wait),
		Ticket: r.Ticket,
		Keep:   r.Keep,
		Claim:  r.Claim,
	}
}

// wake is the one translation of what there is to tell. Whom it is for shows
// as a digest, since whoever knows an ID can speak for it.
func wake(w core.Wake) quorum.Wake {
	to := quorum.Wake{Kind: quorum.WakeKind(w.Kind), Counter: w.Counter, After: w.After}
	if w.Kind == core.WakeTurn || w.Kind == core.WakeNext {
		to.Owner = quorum.Owner{ID: quorum.OwnerID(w.Owner.ID)}.Digest()
	}
	return to
}

// grant is the one translation of a vote.
func (s *Store) grant(a core.Answer) quorum.Grant {
	return quorum.Grant{
		Token:    a.Token,
		TTL:      a.TTL,
		Mode:     quorum.Mode(a.Mode),
		Readers:  a.Readers,
		Previous: quorum.Previous(a.Previous),
		Server:   s.server,
		Ticket:   s.ticket(a),
	}
}

// ticket is that of an answer, where it is one of a queue.
func (s *Store) ticket(a core.Answer) int64 {
	if !s.limits.Queues {
		return 0
	}
	return a.Ticket
}

// refusal is the one translation of everything that is not granted.
func (s *Store) refusal(a core.Answer) error {
	switch a.Outcome {
	case core.Granted:
		return nil
	case core.Undelivered:
		return s.refused(fmt.Errorf("%w: %s", quorum.ErrInvalidOption, a.Reason))
	}
	return &quorum.RefusedError{
		Outcome: quorum.Outcome(a.Outcome),
		Label:   a.Label,
		Left:    a.Left,
		Counter: a.Token,
		Readers: a.Readers,
		// A copy of the request may still be under way then, and leave
		// something after this answer.
		Clean:  a.Clean && !s.limits.Doubles,
		Forced: a.Forced,
		Server: s.server,
		Ticket: s.ticket(a),
		Rank:   a.Rank,
		Reason: a.Reason,
	}
}

package etcdstore

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
)

// check refuses what no store could do, before anything is sent. The model
// refuses the rest.
func check(verb core.Verb, r *quorum.Request) error {
	switch {
	case r.Key == "" || len(r.Key) > maxKey:
		return fmt.Errorf("%w: %d bytes, where 1 to %d are allowed", quorum.ErrInvalidKey, len(r.Key), maxKey)
	case !utf8.ValidString(r.Key):
		return fmt.Errorf("%w: %q is not UTF-8", quorum.ErrInvalidKey, r.Key)
	case strings.Contains(r.Key, "\x00"):
		return fmt.Errorf("%w: %q holds a NUL", quorum.ErrInvalidKey, r.Key)
	case len(r.Label) > maxLabel:
		return fmt.Errorf("%w: a label of %d bytes, where %d are allowed", quorum.ErrInvalidOption, len(r.Label), maxLabel)
	case verb == core.Release:
		return nil
	case r.TTL <= 0 || r.TTL > r.MaxTTL:
		return fmt.Errorf("%w: %v for key %q does not lie between 0 and MaxTTL, %v", quorum.ErrInvalidTTL, r.TTL, r.Key, r.MaxTTL)
	case r.Kind > quorum.KindForce || r.Mode > quorum.ModeShared || r.Wait > quorum.WaitQueue:
		return fmt.Errorf("%w: kind %d, mode %d or wait %d is not known", quorum.ErrInvalidOption, r.Kind, r.Mode, r.Wait)
	}
	return nil
}

// request turns a request into the model's.
func request(verb core.Verb, r *quorum.Request) core.Request {
	return core.Request{
		Verb:   verb,
		Kind:   core.Kind(r.Kind),
		Mode:   core.Mode(r.Mode),
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

// grant turns the model's answer into a vote.
func (m *move) grant() quorum.Grant {
	a := &m.answer
	return quorum.Grant{
		Token:    a.Token,
		TTL:      a.TTL,
		Mode:     quorum.Mode(a.Mode),
		Readers:  a.Readers,
		Previous: quorum.Previous(a.Previous),
		Server:   m.seen.server,
		Ticket:   a.Ticket,
	}
}

// refusal turns everything that is not granted into an error. The client sends
// no transaction twice by itself, so what the model says is clean is.
func (s *Store) refusal(m *move) error {
	a := &m.answer
	switch a.Outcome {
	case core.Granted:
		return nil
	case core.Undelivered:
		return quorum.Undelivered(fmt.Errorf("%w: %s", quorum.ErrInvalidOption, a.Reason))
	}
	return &quorum.RefusedError{
		Outcome: quorum.Outcome(a.Outcome),
		Label:   a.Label,
		Left:    max(a.Left, 0).Round(time.Microsecond),
		Counter: a.Token,
		Readers: a.Readers,
		Clean:   a.Clean,
		Forced:  a.Forced,
		Server:  m.seen.server,
		Reason:  a.Reason,
		Ticket:  a.Ticket,
		Rank:    a.Rank,
	}
}

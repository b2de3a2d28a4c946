package pgstore

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorum"
)

// answer is a row of the function ask.
type answer struct {
	word     string
	token    int64 // of a refusal the counter
	ttl      int64
	shared   bool
	readers  int64
	previous int64
	rest     int64
	label    []byte
	forced   bool
	clean    bool
	reason   string
	ticket   int64
	rank     int64
	after    []byte // nil when the cleaner did not run
	server   string
	life     int64
	seen     string
}

// fields are where the columns go, in their order.
func (a *answer) fields() []any {
	return []any{
		&a.word, &a.token, &a.ttl, &a.shared, &a.readers, &a.previous, &a.rest, &a.label, &a.forced, &a.clean, &a.reason,
		&a.ticket, &a.rank, &a.after, &a.server, &a.life, &a.seen,
	}
}

func (s *Store) grant(v verb, r *quorum.Request, a *answer) (quorum.Grant, error) {
	if a.word != "granted" {
		return quorum.Grant{}, s.refused(v, r, a)
	}
	g := quorum.Grant{
		Token: a.token, TTL: time.Duration(a.ttl) * time.Microsecond, Readers: int(a.readers),
		Previous: quorum.Previous(a.previous), Server: a.server, Ticket: a.ticket,
	}
	if a.shared {
		g.Mode = quorum.ModeShared
	}
	return g, nil
}

// refused turns a refusal of any function into its error.
func (s *Store) refused(v verb, r *quorum.Request, a *answer) error {
	e := &quorum.RefusedError{
		Left: time.Duration(a.rest) * time.Microsecond, Counter: a.token, Readers: int(a.readers), Label: string(a.label),
		Forced: a.forced, Clean: a.clean && !s.limits.Doubles, Server: a.server, Reason: a.reason,
		Ticket: a.ticket, Rank: int(a.rank),
	}
	switch a.word {
	case "held", "late":
		e.Outcome = quorum.OutcomeContended
	case "ready":
		e.Outcome = quorum.OutcomeReady
	case "not held":
		e.Outcome = quorum.OutcomeNotHeld
	case "quarantined":
		e.Outcome = quorum.OutcomeQuarantined
	case "mismatch":
		e.Outcome = quorum.OutcomeMismatch
		e.Reason = fmt.Sprintf("it serves the set %016s and was asked for %v: do all clients list the same "+
			"stores, strategy and MaxTTL?", a.reason, r.Set)
	case "invalid":
		return s.unsent(fmt.Errorf("%s %q: %w: %s", v, r.Key, quorum.ErrInvalidOption, a.reason))
	default:
		return fmt.Errorf("postgres store %s: %s %q: the server answered %q, which is not understood", s.name, v, r.Key, a.word)
	}
	return e
}

package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// wrap says what was being done to which key.
func (s *Store) wrap(v verb, key string, err error) error {
	return fmt.Errorf("redis store %s: %v %q: %w", s.name, v, key, err)
}

// grant reads the reply to Acquire and Extend: a bare token, token and ticket in
// one string, or a table.
func (s *Store) grant(r *quorum.Request, reply any, at *scripts, err error) (quorum.Grant, error) {
	if err != nil {
		return quorum.Grant{}, fmt.Errorf("redis store %s: %q: %w", s.name, r.Key, err)
	}
	g := quorum.Grant{TTL: r.TTL, Server: s.server(at)}
	switch usual := reply.(type) {
	case int64:
		g.Token, g.Previous = usual, quorum.PreviousReleased
		return g, nil
	case string:
		token, ticket, _ := strings.Cut(usual, " ")
		if g.Token, err = strconv.ParseInt(token, 10, 64); err == nil {
			g.Ticket, err = strconv.ParseInt(ticket, 10, 64)
		}
		if err != nil {
			return quorum.Grant{}, fmt.Errorf("redis store %s: %q: the script answered %q, which is not understood", s.name, r.Key, usual)
		}
		g.Previous = quorum.PreviousReleased
		return g, nil
	}
	t := table{row: reply}
	if t.word(0) != "granted" {
		return quorum.Grant{}, s.refused(t, r, at)
	}
	g.Token, g.Readers, g.Ticket = t.number(1), int(t.number(4)), t.number(5)
	if t.word(2) == "r" {
		g.Mode = quorum.ModeShared
	}
	switch t.word(3) {
	case "r":
		g.Previous = quorum.PreviousReleased
	case "e":
		g.Previous = quorum.PreviousExpired
	}
	return g, t.err
}

// refused reads a refusal: word, left, counter, readers, clean, label, and
// either whether the label's owner took the name by force or a reason; where a
// name can be queued for, also ticket and rank.
func (s *Store) refused(t table, r *quorum.Request, at *scripts) error {
	e := &quorum.RefusedError{
		Left:    time.Duration(t.number(1)) * time.Microsecond,
		Counter: t.number(2),
		Readers: int(t.number(3)),
		Clean:   t.number(4) == 1 && !s.limits.Doubles,
		Label:   t.word(5),
		Server:  s.server(at),
	}
	switch last := t.at(6).(type) {
	case int64:
		e.Forced = last == 1
	case string:
		e.Reason = last
	}
	if row, _ := t.row.([]any); len(row) > 7 {
		e.Ticket, e.Rank = t.number(7), int(t.number(8))
	}
	switch word := t.word(0); word {
	case "held":
		e.Outcome = quorum.OutcomeContended
	case "ready":
		e.Outcome = quorum.OutcomeReady
	case "not held":
		e.Outcome = quorum.OutcomeNotHeld
	case "quarantined":
		e.Outcome = quorum.OutcomeQuarantined
	case "mismatch":
		e.Outcome = quorum.OutcomeMismatch
		e.Reason = fmt.Sprintf("redis store %s serves the set %s and was asked for %v: do all clients list the same "+
			"stores, strategy and MaxTTL?", s.name, e.Reason, r.Set)
	default:
		return fmt.Errorf("redis store %s: %q: the script answered %q, which is not understood", s.name, r.Key, word)
	}
	if t.err != nil {
		return fmt.Errorf("redis store %s: %q: %w", s.name, r.Key, t.err)
	}
	return e
}

// table reads a reply that is an array, field by field. The first field that is
// not what it should be leaves an error.
type table struct {
	row any
	err error
}

func (t *table) at(i int) any {
	row, _ := t.row.([]any)
	if i >= len(row) {
		t.err = fmt.Errorf("the script's reply has %d fields and no %d", len(row), i+1)
		return nil
	}
	return row[i]
}

func (t *table) number(i int) int64 {
	n, ok := t.at(i).(int64)
	if !ok && t.err == nil {
		t.err = fmt.Errorf("field %d of the script's reply is no number", i+1)
	}
	return n
}

func (t *table) word(i int) string {
	w, ok := t.at(i).(string)
	if !ok && t.err == nil {
		t.err = fmt.Errorf("field %d of the script's reply is no text", i+1)
	}
	return w
}

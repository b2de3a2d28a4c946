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

// grant reads the reply to Acquire and Extend: of a writer a line, else a table.
func (s *Store) grant(r *quorum.Request, c *call) (quorum.Grant, error) {
	g := quorum.Grant{TTL: r.TTL, Server: s.server(c.at)}
	if c.line != "" {
		if !writer(&g, c.line) {
			return quorum.Grant{}, fmt.Errorf("redis store %s: %q: the script answered %q, which is not understood", s.name, r.Key, c.line)
		}
		return g, nil
	}
	t := table{row: c.row}
	if t.word(0) != "granted" {
		return quorum.Grant{}, s.refused(t, r, c.at)
	}
	g.Mode = quorum.ModeShared
	g.Token, g.Previous, g.Readers, g.Ticket = t.number(1), previous[t.word(2)], int(t.number(3)), t.number(4)
	return g, t.err
}

// writer reads a grant of an exclusive vote: token, how the holder before ended,
// and a ticket if one was asked for.
func writer(g *quorum.Grant, text string) bool {
	token, rest, _ := strings.Cut(text, " ")
	last, ticket, asked := strings.Cut(rest, " ")
	var bad, worse error
	g.Token, bad = strconv.ParseInt(token, 10, 64)
	if asked {
		g.Ticket, worse = strconv.ParseInt(ticket, 10, 64)
	}
	var known bool
	g.Previous, known = previous[last]
	return bad == nil && worse == nil && known
}

var previous = map[string]quorum.Previous{
	"u": quorum.PreviousUnknown, "r": quorum.PreviousReleased, "e": quorum.PreviousExpired,
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
		e.Reason = fmt.Sprintf("it serves the set %s and was asked for %v: do all clients list the same "+
			"stores, strategy and MaxTTL?", e.Reason, r.Set)
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

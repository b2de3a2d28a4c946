package redisstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// ReadStep implements [quorum.HighWater]. A cluster is in quarantine as long as
// one of its parts is, and its step is the highest of theirs.
func (s *Store) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	answers, err := s.onRecords(ctx, readStep, &r, s.every(), func(int) []any { return nil })
	if err != nil {
		return quorum.Step{}, err
	}
	all := quorum.Step{Over: true}
	seen := &reading{ends: make([]int64, len(answers)), runs: make([]string, len(answers))}
	for i := range answers {
		t := &answers[i].table
		if t.word(0) != "step" {
			return quorum.Step{}, s.refused(*t, &r, answers[i].at)
		}
		all.Step, all.Base = max(all.Step, t.number(1)), max(all.Base, t.number(2))
		seen.ends[i], seen.runs[i] = t.number(3), answers[i].at.runID
		if seen.ends[i] > 0 {
			all.Over = all.Over && t.number(4) == 1
			all.Left = max(all.Left, time.Duration(t.number(5))*time.Microsecond)
		}
		if t.err != nil {
			return quorum.Step{}, fmt.Errorf("redis store %s: %v: %w", s.name, readStep, t.err)
		}
		all.Server = s.server(answers[i].at)
	}
	all.Quarantine = seen.id()
	all.Over = all.Over && all.Quarantine != ""
	s.read.Store(seen)
	return all, nil
}

// reading is which quarantines the parts of a store were found in: the run ids
// of their servers, and when each ends or 0.
type reading struct {
	ends []int64
	runs []string
}

// id names the quarantine as a whole: another one of any part changes it.
func (r *reading) id() string {
	if len(r.ends) == 1 {
		if r.ends[0] == 0 {
			return ""
		}
		return r.runs[0] + "@" + strconv.FormatInt(r.ends[0], 10)
	}
	sum, some := sha256.New(), false
	for i, end := range r.ends {
		if end > 0 {
			some = true
			_, _ = fmt.Fprintln(sum, i, r.runs[i], end)
		}
	}
	if !some {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// Raise implements [quorum.HighWater]. It concerns the parts that are in the
// quarantine meant, or all where none is meant; an error may leave some of them
// raised, and the others go on as they were.
func (s *Store) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	if o.Step < 0 || o.Step >= 1<<27 {
		return s.unsent(fmt.Errorf("%w: a raise above step %d would use up the tokens", quorum.ErrInvalidOption, o.Step))
	}
	how := "quorum"
	switch {
	case o.Forgotten:
		how = "forgotten"
	case o.Fresh:
		how = "fresh"
	case o.Alone:
		how = "alone"
	}
	meant, err := s.meant(o.Quarantine)
	if err != nil {
		return s.unsent(err)
	}
	var ps []*part
	var args [][]any
	for i := range s.parts {
		if meant.ends[i] == 0 && o.Quarantine != "" && !o.Forgotten {
			continue // it votes, and remembers what it gave
		}
		run := meant.runs[i]
		if meant.ends[i] == 0 {
			run = ""
		}
		ps, args = append(ps, &s.parts[i]), append(args, []any{run, meant.ends[i], o.Step, how})
	}
	answers, err := s.onRecords(ctx, raise, &r, ps, func(i int) []any { return args[i] })
	if err != nil {
		return err
	}
	return s.refusal(&r, answers)
}

// meant finds what a quarantine's name says of each part. A cluster knows only
// the one that it read last: a raise for an earlier one comes too late.
func (s *Store) meant(id string) (*reading, error) {
	none := &reading{ends: make([]int64, len(s.parts)), runs: make([]string, len(s.parts))}
	if id == "" {
		return none, nil
	}
	if len(s.parts) > 1 {
		if last := s.read.Load(); last != nil && last.id() == id {
			return last, nil
		}
		return nil, &quorum.RefusedError{
			Outcome: quorum.OutcomeQuarantined, Reason: "the raise is meant for another quarantine than the one read last",
		}
	}
	run, end, _ := strings.Cut(id, "@")
	until, err := strconv.ParseInt(end, 10, 64)
	if err != nil || until <= 0 {
		return nil, fmt.Errorf("%w: %q is no quarantine of this store", quorum.ErrInvalidOption, id)
	}
	none.runs[0], none.ends[0] = run, until
	return none, nil
}

// Inspect implements [quorum.Inspector].
func (s *Store) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	if err := s.check(inspect, &r); err != nil {
		return quorum.State{}, err
	}
	c := s.call(inspect, &r)
	if err := s.eval(ctx, inspect, &r, s.part(r.Key), c); err != nil {
		return quorum.State{}, s.wrap(inspect, r.Key, err)
	}
	t := table{row: c.row}
	if t.word(0) != "state" {
		return quorum.State{}, s.refused(t, &r, c.at)
	}
	state := quorum.State{Counter: t.number(1), Quarantine: t.number(2) == 1, Server: s.server(c.at)}
	rows, _ := c.row.([]any)
	for _, row := range rows[3:] {
		h := table{row: row}
		holder := quorum.Holder{
			Owner: digest(h.word(0)),
			Token: h.number(2),
			Since: time.UnixMicro(h.number(3)),
			Left:  time.Duration(h.number(4)) * time.Microsecond,
			Label: h.word(5),
		}
		if h.word(1) == "r" {
			holder.Mode = quorum.ModeShared
		}
		if h.err != nil {
			return quorum.State{}, s.wrap(inspect, r.Key, h.err)
		}
		state.Holders = append(state.Holders, holder)
	}
	return state, t.err
}

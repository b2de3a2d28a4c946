package redisstore

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// ReadStep implements [quorum.HighWater].
func (s *Store) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	reply, at, err := s.evalRecord(ctx, readStep, &r)
	if err != nil {
		return quorum.Step{}, err
	}
	t := table{row: reply}
	if t.word(0) != "step" {
		return quorum.Step{}, s.refused(t, &r, at)
	}
	step := quorum.Step{
		Step:   t.number(1),
		Base:   t.number(2),
		Over:   t.number(4) == 1,
		Left:   time.Duration(t.number(5)) * time.Microsecond,
		Server: at.runID,
	}
	if end := t.number(3); end > 0 {
		step.Quarantine = at.runID + "@" + strconv.FormatInt(end, 10)
	}
	return step, t.err
}

// Raise implements [quorum.HighWater].
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
	run, end, _ := strings.Cut(o.Quarantine, "@")
	meant, err := strconv.ParseInt(end, 10, 64)
	if o.Quarantine != "" && (err != nil || meant <= 0) {
		return s.unsent(fmt.Errorf("%w: %q is no quarantine of this store", quorum.ErrInvalidOption, o.Quarantine))
	}
	reply, at, err := s.evalRecord(ctx, raise, &r, run, meant, o.Step, how)
	if err != nil {
		return err
	}
	if done, ok := reply.(int64); ok && done == 1 {
		return nil
	}
	return s.refused(table{row: reply}, &r, at)
}

// Inspect implements [quorum.Inspector].
func (s *Store) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	if err := s.check(inspect, &r); err != nil {
		return quorum.State{}, err
	}
	reply, at, err := s.eval(ctx, inspect, &r, s.keys(&r))
	if err != nil {
		return quorum.State{}, s.wrap(inspect, r.Key, err)
	}
	t := table{row: reply}
	if t.word(0) != "state" {
		return quorum.State{}, s.refused(t, &r, at)
	}
	state := quorum.State{Counter: t.number(1), Quarantine: t.number(2) == 1, Server: at.runID}
	rows, _ := reply.([]any)
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

// evalRecord runs a script that concerns the record alone.
func (s *Store) evalRecord(ctx context.Context, v verb, r *quorum.Request, args ...any) (any, *scripts, error) {
	if r.MaxTTL <= 0 {
		return nil, nil, s.unsent(fmt.Errorf("%w: MaxTTL %v is not positive", quorum.ErrInvalidTTL, r.MaxTTL))
	}
	reply, at, err := s.eval(ctx, v, r, []string{s.tag + ":record"}, args...)
	if err != nil {
		err = fmt.Errorf("redis store %s: %v: %w", s.name, v, err)
	}
	return reply, at, err
}

// digest turns a stored owner into what may be shown.
func digest(owner string) string {
	var o quorum.Owner
	if n, err := hex.Decode(o.ID[:], []byte(owner)); err != nil || n != len(o.ID) {
		return ""
	}
	return o.Digest()
}

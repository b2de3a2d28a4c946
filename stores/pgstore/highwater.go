package pgstore

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// ReadStep implements [quorum.HighWater].
func (s *Store) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	if err := s.checkRecord(&r); err != nil {
		return quorum.Step{}, err
	}
	known := s.known.Load()
	var a answer
	var step quorum.Step
	var ends int64
	err := s.call(ctx, &r, s.text.readStep,
		[]any{int64(r.Set), micros(r.MaxTTL), millis(r.Limit), known.server, known.life, known.seen},
		[]any{&a.word, &a.reason, &step.Step, &step.Base, &ends, &step.Over, &a.rest, &a.server, &a.life, &a.seen})
	if err != nil {
		return quorum.Step{}, fmt.Errorf("postgres store %s: read step: %w", s.name, err)
	}
	s.saw(a.server, a.life, a.seen)
	if a.word != "granted" {
		return quorum.Step{}, s.refused("read step", &r, &a)
	}
	s.advise(ctx, &r)
	step.Left, step.Server = time.Duration(a.rest)*time.Microsecond, a.server
	if ends > 0 {
		step.Quarantine = fmt.Sprintf("%s#%d@%d", a.server, a.life, ends)
	}
	return step, nil
}

// advise reads once what Advice tells. Its failure is no failure of a verb.
func (s *Store) advise(ctx context.Context, r *quorum.Request) {
	var setting string
	if s.syncs.Load() != syncUnknown || s.send(ctx, r.Limit, s.text.sync, nil, []any{&setting}) != nil {
		return
	}
	switch setting {
	case "on on":
		s.syncs.Store(syncGood)
	case "on off":
		s.syncs.Store(syncTorn)
	default:
		s.syncs.Store(syncOff)
	}
}

// Raise implements [quorum.HighWater].
func (s *Store) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	if err := s.checkRecord(&r); err != nil {
		return err
	}
	server, life, ends, ok := parseQuarantine(o.Quarantine)
	switch {
	case o.Step < 0 || o.Step >= 1<<27:
		return s.unsent(fmt.Errorf("%w: a raise above step %d would use up the tokens", quorum.ErrInvalidOption, o.Step))
	case !ok:
		return s.unsent(fmt.Errorf("%w: %q is no quarantine of this store", quorum.ErrInvalidOption, o.Quarantine))
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
	known := s.known.Load()
	a := answer{clean: true}
	err := s.call(ctx, &r, s.text.raise, []any{
		server, life, ends, o.Step, how,
		int64(r.Set), micros(r.MaxTTL), millis(r.Limit), known.server, known.life, known.seen,
	}, []any{&a.word, &a.reason, &a.rest, &a.server, &a.life, &a.seen})
	if err != nil {
		return fmt.Errorf("postgres store %s: raise: %w", s.name, err)
	}
	s.saw(a.server, a.life, a.seen)
	if a.word != "granted" {
		return s.refused("raise", &r, &a)
	}
	return nil
}

// parseQuarantine reads what ReadStep wrote: server#life@end, or nothing.
func parseQuarantine(text string) (server string, life, ends int64, ok bool) {
	if text == "" {
		return "", 0, 0, true
	}
	server, rest, _ := strings.Cut(text, "#")
	first, second, _ := strings.Cut(rest, "@")
	life, errLife := strconv.ParseInt(first, 10, 64)
	ends, errEnds := strconv.ParseInt(second, 10, 64)
	return server, life, ends, errLife == nil && errEnds == nil && ends > 0
}

// Inspect implements [quorum.Inspector].
func (s *Store) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	if err := s.check(verbInspect, &r); err != nil {
		return quorum.State{}, err
	}
	known := s.known.Load()
	a := answer{clean: true}
	var state quorum.State
	var votes []byte
	err := s.call(ctx, &r, s.text.inspect,
		[]any{[]byte(r.Key), int64(r.Set), micros(r.MaxTTL), known.server, known.life, known.seen},
		[]any{&a.word, &a.reason, &state.Counter, &state.Quarantine, &state.Server, &a.shared, &votes})
	if err != nil {
		return quorum.State{}, s.wrap(verbInspect, r.Key, err)
	}
	if a.word != "granted" {
		return quorum.State{}, s.refused(verbInspect, &r, &a)
	}
	state.Holders, err = holders(votes, a.shared)
	if err != nil {
		return quorum.State{}, s.wrap(verbInspect, r.Key, err)
	}
	return state, nil
}

func holders(votes []byte, shared bool) ([]quorum.Holder, error) {
	if len(votes) == 0 {
		return nil, nil
	}
	var rows []struct {
		Owner, Label       string
		Token, Since, Left int64
	}
	if err := json.Unmarshal(votes, &rows); err != nil {
		return nil, err
	}
	var all []quorum.Holder
	for _, row := range rows {
		var o quorum.Owner
		_, err := hex.Decode(o.ID[:], []byte(row.Owner))
		label, errLabel := base64.StdEncoding.DecodeString(strings.ReplaceAll(row.Label, "\n", ""))
		if err != nil || errLabel != nil {
			return nil, fmt.Errorf("a vote that is not understood")
		}
		h := quorum.Holder{
			Owner: o.Digest(), Label: string(label), Token: row.Token,
			Since: time.UnixMicro(row.Since), Left: time.Duration(row.Left) * time.Microsecond,
		}
		if shared {
			h.Mode = quorum.ModeShared
		}
		all = append(all, h)
	}
	return all, nil
}

// checkRecord refuses a request about the record that no store could carry out.
func (s *Store) checkRecord(r *quorum.Request) error {
	if r.MaxTTL <= 0 {
		return s.unsent(fmt.Errorf("%w: MaxTTL %v is not positive", quorum.ErrInvalidTTL, r.MaxTTL))
	}
	return nil
}

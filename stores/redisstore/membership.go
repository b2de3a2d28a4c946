package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quorumlock/quorum"
)

// Serves implements [quorum.Membership]. In a cluster the first part stands for
// all.
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	answers, err := s.onRecords(ctx, serves, &r, s.every()[:1], func(int) []any { return nil })
	if err != nil {
		return nil, err
	}
	t := answers[0].table
	if t.word(0) != "serves" {
		return nil, s.refused(t, &r, answers[0].at)
	}
	var sets []quorum.Fingerprint
	rows, _ := t.row.([]any)
	for i := 1; i < len(rows); i++ {
		word := t.word(i)
		if word == none {
			continue
		}
		set, err := strconv.ParseUint(word, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("redis store %s: the record serves %q, which is no fingerprint", s.name, word)
		}
		sets = append(sets, quorum.Fingerprint(set))
	}
	return sets, t.err
}

// Serve implements [quorum.Membership]. While two sets are served, the MaxTTL of
// r is to be the longer of theirs: no client of the other brings the end of a
// lease near.
func (s *Store) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	if len(to) == 0 {
		return s.unsent(fmt.Errorf("%w: a store serves one set at least", quorum.ErrInvalidOption))
	}
	was, err := pair(from)
	if err != nil {
		return s.unsent(err)
	}
	will, err := pair(to)
	if err != nil {
		return s.unsent(err)
	}
	args := []any{will[0], will[1], was[0], was[1]}
	// The first part, which stands for all in Serves, goes last: who finds it as
	// it was repeats the move.
	for _, ps := range [][]*part{s.every()[1:], s.every()[:1]} {
		answers, err := s.onRecords(ctx, serve, &r, ps, func(int) []any { return args })
		if err != nil {
			return err
		}
		if err := s.refusal(&r, answers); err != nil {
			return err
		}
	}
	return nil
}

// none stands for a set that is missing.
const none = "-"

// pair returns sets as the script takes them.
func pair(sets []quorum.Fingerprint) ([2]string, error) {
	words := [2]string{none, none}
	sets = slices.Compact(slices.Sorted(slices.Values(sets)))
	if len(sets) > len(words) {
		return words, fmt.Errorf("%w: a store serves two sets at most, not %d", quorum.ErrInvalidOption, len(sets))
	}
	for i, set := range sets {
		words[i] = set.String()
	}
	return words, nil
}

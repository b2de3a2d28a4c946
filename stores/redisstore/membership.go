package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/quorumlock/quorum"
)

// Serves implements [quorum.Membership].
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	reply, at, err := s.evalRecord(ctx, serves, &r)
	if err != nil {
		return nil, err
	}
	t := table{row: reply}
	if t.word(0) != "serves" {
		return nil, s.refused(t, &r, at)
	}
	var sets []quorum.Fingerprint
	rows, _ := reply.([]any)
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
	reply, at, err := s.evalRecord(ctx, serve, &r, will[0], will[1], was[0], was[1])
	if err != nil {
		return err
	}
	if done, ok := reply.(int64); ok && done == 1 {
		return nil
	}
	return s.refused(table{row: reply}, &r, at)
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

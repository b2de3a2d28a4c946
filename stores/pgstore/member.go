package pgstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/quorumlock/quorum"
)

// Serves implements [quorum.Membership].
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	var text string
	if err := s.call(ctx, &r, s.text.serves, nil, []any{&text}); err != nil {
		return nil, fmt.Errorf("postgres store %s: read the sets that it serves: %w", s.name, err)
	}
	return parseSets(text)
}

// Serve implements [quorum.Membership].
func (s *Store) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	if len(to) < 1 || len(to) > 2 || len(from) > 2 {
		return s.unsent(fmt.Errorf("%w: a store serves one set, or two while it changes", quorum.ErrInvalidOption))
	}
	if err := s.checkRecord(&r); err != nil {
		return err
	}
	var word, text string
	err := s.call(ctx, &r, s.text.serve, []any{joinSets(from), joinSets(to), micros(r.MaxTTL), millis(r.Limit)}, []any{&word, &text})
	if err != nil {
		return fmt.Errorf("postgres store %s: change the sets that it serves: %w", s.name, err)
	}
	if word == "granted" {
		return nil
	}
	serves, err := parseSets(text)
	if err != nil {
		return err
	}
	return &quorum.RefusedError{
		Outcome: quorum.OutcomeMismatch, Clean: true, Server: s.known.Load().server,
		Reason: fmt.Sprintf("postgres store %s serves the sets %v, neither %v nor %v", s.name, serves, from, to),
	}
}

func joinSets(sets []quorum.Fingerprint) string {
	var words []string
	for _, f := range sets {
		words = append(words, strconv.FormatInt(int64(f), 10))
	}
	return strings.Join(words, ",")
}

func parseSets(text string) ([]quorum.Fingerprint, error) {
	var sets []quorum.Fingerprint
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the record lists %q as a set: %w", word, err)
		}
		sets = append(sets, quorum.Fingerprint(n))
	}
	return sets, nil
}

package modelstore

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
)

// Serves reads which sets the store serves, see [quorum.Membership].
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	r.Key = ""
	a, err := s.apply(ctx, request(core.ReadSets, r))
	if err == nil {
		err = s.refusal(a)
	}
	if err != nil {
		return nil, err
	}
	out := make([]quorum.Fingerprint, a.Sets.N)
	for i := range out {
		out[i] = quorum.Fingerprint(a.Sets.Of[i])
	}
	return out, nil
}

// Serve changes which sets the store serves, see [quorum.Membership].
func (s *Store) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	r.Key = ""
	req := request(core.Serve, r)
	if len(from) > 2 || len(to) > 2 || len(to) == 0 {
		return s.refused(fmt.Errorf("%w: to serve %d sets instead of %d, where at most two are possible and one is needed",
			quorum.ErrInvalidOption, len(to), len(from)))
	}
	req.Serve = &core.ServeOrder{From: sets(from), To: sets(to)}
	a, err := s.apply(ctx, req)
	if err != nil {
		return err
	}
	return s.refusal(a)
}

func sets(prints []quorum.Fingerprint) core.Sets {
	var raw [2]uint64
	for i, p := range prints {
		raw[i] = uint64(p)
	}
	return core.SetsOf(raw[:len(prints)]...)
}

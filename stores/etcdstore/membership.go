package etcdstore

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
)

// Serves implements [quorum.Membership].
func (s *Store) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	r.Key = ""
	m, err := s.run(ctx, request(core.ReadSets, &r))
	if err != nil {
		return nil, s.wrap(core.ReadSets, "", err)
	}
	sets := make([]quorum.Fingerprint, m.answer.Sets.N)
	for i := range sets {
		sets[i] = quorum.Fingerprint(m.answer.Sets.Of[i])
	}
	return sets, nil
}

// Serve implements [quorum.Membership].
func (s *Store) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	if len(from) > 2 || len(to) > 2 || len(to) == 0 {
		return s.unsent(fmt.Errorf("%w: to serve %d sets instead of %d, where one or two are possible",
			quorum.ErrInvalidOption, len(to), len(from)))
	}
	r.Key = ""
	req := request(core.Serve, &r)
	req.Serve = &core.ServeOrder{From: setsOf(from), To: setsOf(to)}
	m, err := s.run(ctx, req)
	if err == nil {
		err = s.refusal(m)
	}
	if err != nil {
		return s.wrap(core.Serve, "", err)
	}
	return nil
}

func setsOf(prints []quorum.Fingerprint) core.Sets {
	raw := make([]uint64, len(prints))
	for i, p := range prints {
		raw[i] = uint64(p)
	}
	return core.SetsOf(raw...)
}

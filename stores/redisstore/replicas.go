package redisstore

import (
	"context"
	"fmt"

	"github.com/quorumlock/quorum"
)

// undo takes back a grant that too few replicas have. Whether that worked or not,
// the outcome stays unknown: who asked releases anyway. A converted vote is left,
// since a release would take the lease that it was part of along.
func (s *Store) undo(ctx context.Context, r *quorum.Request, acks int) error {
	if r.Kind != quorum.KindConvert {
		_ = s.eval(ctx, release, r, s.part(r.Key), s.call(release, r))
	}
	return s.unproved(r, acks)
}

// unproved says that too few replicas have a grant.
func (s *Store) unproved(r *quorum.Request, acks int) error {
	return fmt.Errorf("redis store %s: %q: %d of %d replicas acknowledged it within %v: does the server have so many, "+
		"and may its user WAIT?", s.name, r.Key, acks, s.replicas, s.patience)
}

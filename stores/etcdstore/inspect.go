package etcdstore

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Inspect implements [quorum.Inspector]. It reads the name in one round trip,
// and how long each vote lasts in one more for each.
func (s *Store) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	if err := check(core.Release, &r); err != nil {
		return quorum.State{}, s.unsent(err)
	}
	state, err := s.inspect(ctx, &r)
	if err != nil {
		return quorum.State{}, fmt.Errorf("etcd store %s: inspect %q: %w", s.name, r.Key, err)
	}
	return state, nil
}

func (s *Store) inspect(ctx context.Context, r *quorum.Request) (quorum.State, error) {
	ctx, cancel, err := s.bound(ctx, r.Limit)
	if err != nil {
		return quorum.State{}, err
	}
	defer cancel()
	seen, err := s.look(ctx, r.Key)
	if err != nil {
		return quorum.State{}, explain(err)
	}
	if !seen.record.Admits(uint64(r.Set)) {
		return quorum.State{}, &quorum.RefusedError{
			Outcome: quorum.OutcomeMismatch, Server: seen.server, Reason: fmt.Sprintf("it does not serve the set %v", r.Set),
		}
	}
	state := quorum.State{
		Counter:    seen.name.Counter,
		Quarantine: seen.record.Standing != model.Voting || s.gone.Load(),
		Server:     seen.server,
	}
	for _, v := range seen.name.Votes {
		left, err := s.lasts(ctx, seen.kept[voteLeafOf(v.Owner.ID, v.Mode)])
		if err != nil {
			return quorum.State{}, explain(err)
		}
		if left <= 0 {
			continue // over, and not yet removed
		}
		state.Holders = append(state.Holders, quorum.Holder{
			Owner: quorum.Owner{ID: quorum.OwnerID(v.Owner.ID)}.Digest(),
			Label: v.Label,
			Mode:  quorum.Mode(v.Mode),
			Token: v.Token,
			Since: time.UnixMicro(int64(v.Since)),
			Left:  left,
		})
	}
	return state, nil
}

// lasts asks how long a vote lasts; a lease that is over answers below 0.
func (s *Store) lasts(ctx context.Context, k kept) (time.Duration, error) {
	reply, err := s.client().TimeToLive(ctx, clientv3.LeaseID(k.lease))
	if err != nil {
		return 0, err
	}
	return time.Duration(reply.TTL+1) * time.Second, nil
}

package consulstore

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"github.com/hashicorp/consul/api"
)

// identityKey holds who the cluster is. It lies beside all prefixes, so that
// two members with two prefixes on one cluster are noticed; Consul itself shows
// no identity of a cluster to every token.
const identityKey = "quorum-server"

type identity struct {
	id     atomic.Pointer[string]
	hidden atomic.Bool // the token may not see it
}

// server returns who the cluster is. The first client to ask gives it a name.
func (s *Store) server(ctx context.Context, limit time.Duration) (string, error) {
	if id := s.identity.id.Load(); id != nil {
		return *id, nil
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	ctx, cancel := bound(ctx, limit)
	defer cancel()
	id, err := s.identify(ctx)
	switch {
	case denied(err):
		s.identity.hidden.Store(true)
	case err != nil:
		return "", err
	}
	s.identity.id.Store(&id)
	return id, nil
}

func (s *Store) identify(ctx context.Context) (string, error) {
	for {
		pair, _, err := s.client.KV().Get(identityKey, s.query(ctx))
		if err != nil {
			return "", err
		}
		if pair != nil {
			return "consul/" + string(pair.Value), nil
		}
		// Another client may be first; then its name counts.
		first := &api.KVPair{Key: identityKey, Value: []byte(rand.Text())}
		if _, _, err := s.client.KV().CAS(first, s.options(ctx)); err != nil {
			return "", err
		}
	}
}

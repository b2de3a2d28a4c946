package kubestore

import (
	"context"
	"sync/atomic"
	"time"

	coordination "k8s.io/api/coordination/v1"
)

// identity is who the server is: the UID of one Lease of the namespace, which
// the first client makes. It tells one namespace of one cluster under two names,
// whatever the prefixes; a cluster shows no identity of its own to every client.
type identity struct{ id atomic.Pointer[string] }

func (s *Store) server(ctx context.Context, limit time.Duration) (string, error) {
	if id := s.identity.id.Load(); id != nil {
		return *id, nil
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	ctx, cancel := bound(ctx, limit)
	defer cancel()
	for {
		o, err := s.get(ctx, identityName)
		if err != nil {
			return "", err
		}
		if o != nil {
			id := "kube/" + string(o.lease.UID)
			s.identity.id.Store(&id)
			return id, nil
		}
		// Another client may be first; then its Lease counts.
		if _, err := s.put(ctx, &coordination.Lease{ObjectMeta: s.meta(identityName)}); err != nil {
			return "", err
		}
	}
}

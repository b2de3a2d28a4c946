package consulstore

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
)

// watchTime is how long a blocking query waits at most; the server adds a
// sixteenth. It is asked again then.
const watchTime = 5 * time.Minute

// Watch implements [quorum.Watcher] by a blocking query of the name's votes. It
// needs no mark in the store. Each watch has a connection of its own, unless
// the client speaks HTTP/2; an agent takes 200 of one address by default, see
// http_max_conns_per_client.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	folder := s.prefix + nameFolder(r.Key) + votePart
	var before map[string]bool
	q := &api.QueryOptions{Datacenter: s.datacenter, WaitTime: watchTime}
	for {
		keys, meta, err := s.client.KV().Keys(folder, "", q.WithContext(ctx))
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			err, _ = explain(err)
			return fmt.Errorf("consul store %s: watch %q: %w", s.name, r.Key, err)
		}
		now := map[string]bool{}
		for _, key := range keys {
			now[strings.TrimPrefix(key, folder)] = true
		}
		if before == nil {
			tell(quorum.Wake{Kind: quorum.WakeStarted})
		}
		for vote := range before {
			if !now[vote] {
				tell(quorum.Wake{Kind: quorum.WakeChanged})
				break
			}
		}
		before = now
		// An index that fell, as after a restored backup, begins anew; below 1
		// a query would not block.
		if meta.LastIndex < q.WaitIndex {
			q.WaitIndex = 0
		} else {
			q.WaitIndex = max(meta.LastIndex, 1)
		}
	}
}

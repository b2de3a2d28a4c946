package memstore

import (
	"context"
	"sync"

	"github.com/quorumlock/quorum"
)

// watchers are those who watch names.
type watchers struct {
	mu    sync.Mutex
	names map[string]map[*watcher]struct{}
}

type watcher struct{ tell func(quorum.Wake) }

// Watch tells of a name until ctx ends, see [quorum.Watcher]. That a vote ran
// out it tells when the store is next asked about the name: it has no timer.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	w := &watcher{tell}
	s.memory.watchers.add(r.Key, w)
	defer s.memory.watchers.remove(r.Key, w)
	tell(quorum.Wake{Kind: quorum.WakeStarted})
	<-ctx.Done()
	return nil
}

func (s *watchers) add(key string, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.names == nil {
		s.names = map[string]map[*watcher]struct{}{}
	}
	if s.names[key] == nil {
		s.names[key] = map[*watcher]struct{}{}
	}
	s.names[key][w] = struct{}{}
}

func (s *watchers) remove(key string, w *watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.names[key], w)
	if len(s.names[key]) == 0 {
		delete(s.names, key)
	}
}

// Tell is called after the memory's own lock is free: what it tells may come
// after what happened later, which watchers must bear anyway.
func (m *memory) Tell(key string, wakes []quorum.Wake) {
	m.watchers.mu.Lock()
	var all []*watcher
	for w := range m.watchers.names[key] {
		all = append(all, w)
	}
	m.watchers.mu.Unlock()
	for _, w := range all {
		for _, wake := range wakes {
			w.tell(wake)
		}
	}
}

var _ quorum.Watcher = (*Store)(nil)

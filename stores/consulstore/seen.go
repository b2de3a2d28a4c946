package consulstore

import "sync"

// position is how far a store has come: it grows with every transaction, over
// quarantines too, and falls only when an older state was put in its place.
type position struct {
	life  int64
	index uint64
}

func (p position) below(q position) bool {
	return p.life < q.life || p.life == q.life && p.index < q.index
}

// seen is the furthest position that this client knows of. Consul has an index
// for everything, but only that of a key that every transaction writes falls
// with a restored backup.
type seen struct {
	mu  sync.Mutex
	far position
}

func (s *seen) latest() position {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.far
}

// raise notes a position.
func (s *seen) raise(p position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.far.below(p) {
		s.far = p
	}
}

// fell notes what a read showed and reports whether it lies below what was
// known before that read left: what became known since may be newer than it.
func (s *seen) fell(before, p position) bool {
	if p.below(before) {
		return true
	}
	s.raise(p)
	return false
}

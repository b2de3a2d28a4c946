package etcdstore

// A cluster's revision never falls: each answer to a linearizable request has
// at least the revision of every answer before it was sent. One that is lower
// shows that the cluster went back, as one does that was restored from a
// backup. What it gave since then it has forgotten, so the next request puts it
// in quarantine.

// hear notes the revision of an answer to a request that was sent when known
// was the highest.
func (s *Store) hear(known, revision int64) {
	for {
		now := s.revision.Load()
		switch {
		case revision < known && now >= known: // and nobody has seen it yet
			s.gone.Store(true)
			return
		case revision <= now || s.revision.CompareAndSwap(now, revision):
			return
		}
	}
}

// restart counts from a revision on: the quarantine has begun.
func (s *Store) restart(revision int64) {
	s.revision.Store(revision)
	s.gone.Store(false)
}

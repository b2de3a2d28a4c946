package redisstore

// Broken reports whether a subscription of s has lost its connection.
func Broken(s *Store) bool {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for _, t := range s.hub.topics {
		if t.broken {
			return true
		}
	}
	return false
}

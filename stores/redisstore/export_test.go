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

// Tag is the hash tag under which a name's keys lie.
func Tag(s *Store, name string) string { return s.part(name).tag }

// Shards is how many nodes of a cluster s keeps something of.
func Shards(s *Store) (n int) {
	s.shards.Range(func(any, any) bool {
		n++
		return true
	})
	return n
}

// Listens reports whether the waiters of s for a name can be told their turns.
func Listens(s *Store, name string) bool {
	return s.hub.channelOf(s.part(name).tag+":wake:"+name) != none
}

// LaneCount is how many round trips may be under way.
const LaneCount = laneCount

// Waiting is how many calls wait for one.
func Waiting(s *Store) int {
	s.single.lanes.mu.Lock()
	defer s.single.lanes.mu.Unlock()
	return len(s.single.lanes.waiting)
}

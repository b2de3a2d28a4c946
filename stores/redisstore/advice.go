package redisstore

// Advice implements [quorum.Adviser]. What it says of the server is read with
// the scripts, from INFO, which needs no permission for CONFIG.
func (s *Store) Advice() []string {
	var all []string
	if policy := s.policy.Load(); policy != nil && *policy != "" && *policy != "noeviction" {
		all = append(all, "maxmemory-policy is "+*policy+": a full server drops locks and their tokens; set it to noeviction")
	}
	if s.limits.Doubles {
		all = append(all, "the client may send a request twice by itself, so that releases leave tombstones; set MaxRetries to -1")
	}
	if !s.heeds {
		all = append(all, "the client does not watch its context, so that a server that hangs holds a call up for its "+
			"ReadTimeout; set ContextTimeoutEnabled")
	}
	return all
}

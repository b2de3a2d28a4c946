package storetest

import (
	"slices"

	"github.com/quorumlock/quorum"
)

// Begin hands a call on where the store beneath has it and no rule is set. A
// call that may be spoiled is made by the verb's own method.
func (s *Spoiled) Begin(c *quorum.Call) bool {
	s.mu.Lock()
	async, ok := s.under.(quorum.Async)
	ok = ok && len(s.rules) == 0
	s.mu.Unlock()
	if !ok {
		return false
	}
	logged, _ := s.begin(c.Context(), Verb(c.Verb), c.Request)
	s.sent(logged)
	begun := async.Begin(quorum.NewCall(c.Context(), c.Verb, c.Request, func(g quorum.Grant, err error) {
		s.finish(logged, err)
		c.End(g, err)
	}))
	if !begun {
		s.drop(logged)
	}
	return begun
}

// drop takes a call off the log that comes anew.
func (s *Spoiled) drop(c *Call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[c.Verb]--
	s.log = slices.DeleteFunc(s.log, func(other *Call) bool { return other == c })
}

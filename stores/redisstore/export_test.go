package redisstore

import (
	"strings"

	"github.com/quorumlock/quorum"
)

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

// Busy is how many are.
func Busy(s *Store) int {
	s.single.lanes.mu.Lock()
	defer s.single.lanes.mu.Unlock()
	l := &s.single.lanes
	if len(l.waiting) > 0 {
		return 0 // somebody is about to take it
	}
	return l.running - l.idle - len(l.wake)
}

// Waiting is how many calls wait for one.
func Waiting(s *Store) int {
	s.single.lanes.mu.Lock()
	defer s.single.lanes.mu.Unlock()
	return len(s.single.lanes.waiting)
}

// Texts are the scripts of a name's verbs, by name, with or without the part
// that answers the usual calls.
func Texts(r quorum.Request, runID string, usual bool) map[string]string {
	at, texts := write(family{r.Set, r.MaxTTL}, runID, true, false, true), map[string]string{}
	for _, v := range []verb{acquire, extend, release, batch} {
		texts[v.String()] = at.text[v]
		if !usual {
			texts[v.String()] = strings.Replace(at.text[v], "\nif steady then\n", "\nif false then\n", 1)
		}
	}
	return texts
}

// Packed is what a call of a verb sends, and its letter in a batch, or "".
func Packed(s *Store, name string, r quorum.Request) (keys []string, packed, letter string) {
	for _, v := range []verb{acquire, extend, release} {
		if v.String() != name {
			continue
		}
		c := s.call(v, &r)
		keys = append(keys, s.part(r.Key).record.(string))
		words := c.words[:c.n]
		return append(keys, words[:len(words)-1]...), words[len(words)-1], strings.Trim(string(c.letter), "\x00")
	}
	panic("no such verb: " + name)
}

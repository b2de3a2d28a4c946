package core

import "fmt"

// Sets is the fingerprints that a store serves: none before its first request,
// one, or two while its set changes.
type Sets struct {
	N  uint8
	Of [2]uint64 // the first N count, in rising order; the rest is 0
}

// SetsOf returns the fingerprints given, at most two; one given twice counts
// once.
func SetsOf(prints ...uint64) Sets {
	var s Sets
	for _, p := range prints {
		if s.Has(p) {
			continue
		}
		s.Of[s.N] = p
		s.N++
	}
	if s.N == 2 && s.Of[0] > s.Of[1] {
		s.Of[0], s.Of[1] = s.Of[1], s.Of[0]
	}
	return s
}

// Has reports whether the set is one of them.
func (s Sets) Has(set uint64) bool {
	return s.N > 0 && s.Of[0] == set || s.N > 1 && s.Of[1] == set
}

// ServeOrder is the body of a Serve: serve To in place of From.
type ServeOrder struct {
	From, To Sets
}

// String names the sets for people.
func (s Sets) String() string {
	switch s.N {
	case 0:
		return "no set"
	case 1:
		return fmt.Sprintf("the set %016x", s.Of[0])
	}
	return fmt.Sprintf("the sets %016x and %016x", s.Of[0], s.Of[1])
}

package kubestore

import (
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
)

// sightings are what this client has seen of the Leases, and since when.
//
// No clock but its own may end a vote: not the server's, of which there may be
// several, and not the holder's, which wrote the Lease. So a vote is over when
// this client, on the clock that counts its machine's sleep, has known its beat
// for as long as its TTL and reads it still. The holder counts from before its
// request left, this client from after it read the result, so it comes later,
// whatever the two clocks show; only their rates matter.
type sightings struct {
	mu   sync.Mutex
	all  map[string]*sighting // by Lease
	next int                  // how many there may be before those that are over are dropped
}

// sighting is what was seen of one Lease.
type sighting struct {
	at    position                 // the furthest
	beats map[string]clock.Instant // since when each beat of the latest reading is known
	used  clock.Instant
	kept  time.Duration // longest TTL of them
	own   *snapshot     // as this client left it with a vote of its own in it
}

// seen notes a reading of a Lease, at the instant after its answer came, and
// returns how much is left of each of what lasts, at most 0 where it is over.
func (s *sightings) seen(lease string, at position, all []lasting, now clock.Instant) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(all) == 0 && s.all[lease] == nil {
		return nil
	}
	return s.of(lease, now).note(at, all, now)
}

// wrote notes what this client left in a Lease. A beat that it made itself is
// known since before it was sent: whose vote it is may not count from later.
// own is kept for the next verb of the vote, nil if it has none.
func (s *sightings) wrote(lease string, at position, all []lasting, sent clock.Instant, own *snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.of(lease, sent)
	of.note(at, all, sent)
	of.own = own
}

// note keeps since when each beat is known, of the furthest reading alone: one
// whose answer was overtaken shows beats that are gone, and lacks those of now.
func (x *sighting) note(at position, all []lasting, now clock.Instant) []time.Duration {
	known := make(map[string]clock.Instant, len(all))
	left := make([]time.Duration, len(all))
	kept := time.Duration(0)
	for i, l := range all {
		since, ok := x.beats[l.Beat]
		if !ok {
			since = now
		}
		known[l.Beat] = since
		kept = max(kept, duration(l.TTL))
		left[i] = duration(l.TTL) - now.Sub(since)
	}
	if !at.below(x.at) {
		x.at, x.beats, x.kept = at, known, kept
	}
	return left
}

// of returns the sighting of a Lease, which is made if there is none. One that
// nobody asked for since all in it ended is dropped in time: to see it again
// takes a TTL more and harms nobody.
func (s *sightings) of(lease string, now clock.Instant) *sighting {
	of := s.all[lease]
	if of == nil {
		if len(s.all) >= max(s.next, 256) {
			for name, x := range s.all {
				if now.Sub(x.used) > 2*x.kept+sightingRest {
					delete(s.all, name)
				}
			}
			s.next = 2 * len(s.all)
		}
		if s.all == nil {
			s.all = map[string]*sighting{}
		}
		of = &sighting{}
		s.all[lease] = of
	}
	of.used = now
	return of
}

// sightingRest is how much longer a sighting is kept than what it saw.
const sightingRest = time.Minute

// furthest returns the furthest position that a Lease was seen at.
func (s *sightings) furthest(lease string) position {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.all[lease]; of != nil {
		return of.at
	}
	return position{}
}

// own returns what this client left last, or nil.
func (s *sightings) own(lease string) *snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.all[lease]; of != nil {
		return of.own
	}
	return nil
}

// position is how far a store has come: it grows with every write, over
// quarantines too, and falls only when an older state was put in its place.
type position struct {
	life  int64
	index uint64
}

func (p position) below(q position) bool {
	return p.life < q.life || p.life == q.life && p.index < q.index
}

// history is the furthest position that this client knows of. Resource versions
// count all writes of a cluster, so every write must come out above it.
type history struct {
	mu  sync.Mutex
	far position
}

func (h *history) latest() position {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.far
}

func (h *history) raise(p position) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.far.below(p) {
		h.far = p
	}
}

package kubestore

import (
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// The numbers that the documentation states.
const (
	StepPeriod, StepMost, StepBits = core.StepPeriod, model.FollowMost, stepBits
)

// SetClock gives the clock by which votes end.
func (s *Store) SetClock(c clock.Clock) { s.clock = c }

// SetWall gives the clock that the step follows.
func (s *Store) SetWall(now func() time.Time) { s.wall = now }

// OnRead has f called between the decision and what writes it, in every call.
func (s *Store) OnRead(f func()) { s.trial.read = f }

// See has this client see a vote of a Lease for the first time.
func (s *Store) See(lease string, ttl time.Duration) {
	s.seen.seen(lease, position{}, []lasting{{lease, micros(ttl)}}, s.clock.Now())
}

// Sightings returns how many Leases this client remembers.
func (s *Store) Sightings() int {
	s.seen.mu.Lock()
	defer s.seen.mu.Unlock()
	return len(s.seen.all)
}

// LeaseName is what the Lease of a name is called, and SetName the record's.
func LeaseName(prefix, name string) string { return leaseName(prefix, name) }

// SetName is what the Lease of the record is called.
func SetName(prefix string) string { return setName(prefix) }

package consulstore

import (
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// The numbers that the documentation states.
const (
	SessionMin, SessionMax = sessionMin, sessionMax
	StepPeriod, StepMost   = core.StepPeriod, model.FollowMost
	LockDelay              = lockDelay
	MaxTurns               = maxTurns
)

// SetWall gives the clock that the step follows.
func (s *Store) SetWall(now func() time.Time) { s.wall = now }

// Blind makes transactions not compare the record.
func (s *Store) Blind() { s.trial.blind = true }

// OnRead has f called between the read and the transaction of every call.
func (s *Store) OnRead(f func()) { s.trial.read = f }

// Client is the client that Opener made.
func (s *Store) Client() *api.Client { return s.client }

// Spares returns how many unused sessions this client keeps.
func (s *Store) Spares() int {
	s.spares.mu.Lock()
	defer s.spares.mu.Unlock()
	return len(s.spares.free)
}

// Holds returns how many votes this client remembers.
func (s *Store) Holds() int {
	s.holds.mu.Lock()
	defer s.holds.mu.Unlock()
	return len(s.holds.all)
}

// NameFolder is the folder of a name, below the prefix.
func NameFolder(name string) string { return nameFolder(name) }

// Queues says whether waiters stand in line in the store.
func (s *Store) Queues(on bool) { s.limits.Queues = on }

// SetClock gives the clock by which sessions and the lines of queues grow old.
func (s *Store) SetClock(c clock.Clock) { s.clock = c }

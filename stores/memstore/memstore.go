// Package memstore keeps locks in the memory of one process: between its
// goroutines, and in tests. It has the whole contract of a store, expiry,
// tokens and readers included, because it runs the model that every other
// store is compared with.
package memstore

import (
	"strconv"
	"sync/atomic"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/modelstore"
)

// Store is a [quorum.Store] in memory. It is safe for concurrent use, starts
// no goroutine and needs no Close. It arbitrates between goroutines of one
// process only, so it cannot be a member of a set of servers.
//
// A name that nobody uses is dropped some ten minutes after its last lease
// ended. That happens a few names at each call, so a store that is never
// called again keeps what it has.
type Store struct {
	*modelstore.Store
	memory *memory
}

// servers counts the stores of the process: each is a server of its own.
var servers atomic.Int64

// Option is a setting of a [Store].
type Option func(*settings)

type settings struct {
	clock     clock.Clock
	forgetful bool
}

// WithClock replaces the clock, [clock.System] by default. The clock's
// progress is added to the calendar time at which the store was made. In a
// testing/synctest bubble give [clock.Go].
func WithClock(c clock.Clock) Option { return func(s *settings) { s.clock = c } }

// Forgetful makes the store say in its Limits that it may lose what it
// acknowledged, as a server does that writes to its disk now and then. It is
// for tests, and for [Store.Restart].
func Forgetful() Option { return func(s *settings) { s.forgetful = true } }

// New returns an empty store that is the member name of its set. It is new by
// construction, and so grants at once.
func New(name string, options ...Option) *Store {
	set := settings{clock: clock.System()}
	for _, o := range options {
		o(&set)
	}
	server := "memory/" + strconv.FormatInt(servers.Add(1), 10)
	limits := quorum.Limits{
		MinTTL:  time.Millisecond,
		Grain:   time.Microsecond,
		Reach:   quorum.ReachProcess,
		Shares:  true,
		Watches: true,
		Queues:  true,
		Forgets: set.forgetful,
	}
	m := newMemory(name, server, set.clock)
	return &Store{Store: modelstore.New(name, limits, server, m), memory: m}
}

// Restart makes the store behave as a server that was restarted, for tests:
// with keep it comes back with what it had, without it comes back empty.
// Either way it cannot know what it lost, so that it is in quarantine from its
// next request on; a set takes only a [Forgetful] store back out of it.
func (s *Store) Restart(keep bool) { s.memory.restart(keep) }

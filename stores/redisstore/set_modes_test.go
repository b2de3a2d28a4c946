package redisstore_test

import (
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/rwtest"
)

// Five readers and three writers on five servers: never a writer with anyone.
// With QUORUM_RW_STEPS=100000 all the steps of R32.
func TestR32ReadersAndWritersOnFiveServers(t *testing.T) {
	s := newSet(t, 5)
	s.Fresh()
	steps, limit := rwtest.Steps(3000)
	stats, err := rwtest.Run(t.Context(), func() *quorum.Locker { return s.Locker() }, 5, 3, steps, limit, 1)
	if err != nil {
		t.Error(err)
	}
	if stats.Steps < steps || stats.Acquired == 0 || stats.Demoted == 0 {
		t.Errorf("the steps show little: %+v", stats)
	}
	t.Logf("%+v", stats)
}

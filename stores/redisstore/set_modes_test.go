package redisstore_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/rwtest"
)

// Five readers and three writers on five servers: never a writer with anyone.
func TestR32ReadersAndWritersOnFiveServers(t *testing.T) {
	s := newSet(t, 5)
	s.Fresh()
	stats, err := rwtest.Run(t.Context(), func() *quorum.Locker { return s.Locker() }, 5, 3, 3000, 30*time.Second, 1)
	if err != nil {
		t.Error(err)
	}
	if stats.Steps < 300 || stats.Acquired == 0 || stats.Demoted == 0 {
		t.Errorf("the steps show little: %+v", stats)
	}
	t.Logf("%+v", stats)
}

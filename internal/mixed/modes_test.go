//go:build linux

package mixed

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/rwtest"
)

// Five readers and three writers over servers of four kinds: never a writer with
// anyone. With QUORUM_RW_STEPS=100000 all the steps of R32.
func TestR32ReadersAndWritersOnAMixedQuorum(t *testing.T) {
	servers := []server{redisServer(t), etcdServer(t), postgresServer(t), consulServer(t), redisServer(t)}
	s := acceptance.Combine(t, members(t, servers))
	options := []quorum.Option{quorum.TTL(5 * time.Second), quorum.MaxTTL(10 * time.Second)}
	s.Fresh(options...)
	steps, limit := rwtest.Steps(600)
	stats, err := rwtest.Run(t.Context(), func() *quorum.Locker { return s.Locker(options...) }, 5, 3, steps, limit, 1)
	if err != nil {
		t.Error(err)
	}
	if stats.Steps < steps || stats.Acquired == 0 || stats.Demoted == 0 {
		t.Errorf("the steps show little: %+v", stats)
	}
	t.Logf("%+v", stats)
}

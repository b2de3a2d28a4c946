package redisstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
	"github.com/quorumlock/quorum/storetest"
)

// TestConformanceRedis runs the suite in real time, all checks side by side on
// one server, each under a prefix of its own.
func TestConformanceRedis(t *testing.T) {
	node := testserver.Redis(t)
	var prefixes sync.Map
	var n atomic.Int32
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			prefix := fmt.Sprintf("check-%d", n.Add(1))
			s := store(t, client(t, node.Addr), redisstore.Prefix(prefix))
			prefixes.Store(s, prefix)
			return s
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			prefix, _ := prefixes.Load(first)
			return store(t, client(t, node.Addr), redisstore.Prefix(prefix.(string)))
		},
		Parallel: true,
	})
}

// TestConformanceRestarts runs the suite on real servers, one a check, whose
// clocks are moved by hand and which are restarted.
func TestConformanceRestarts(t *testing.T) {
	var node *testserver.RedisNode
	var clock *serverClock
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			node, clock = stoppedRedis(t)
			return store(t, client(t, node.Addr))
		},
		Second: func(t *testing.T, _ quorum.Store) quorum.Store {
			return store(t, client(t, node.Addr))
		},
		Advance: func(d time.Duration) { clock.Advance(d) },
		Restart: func(t *testing.T, s quorum.Store) {
			node.Restart()
			await(t, "the client to reach the server again", func() bool {
				_, err := s.(*redisstore.Store).Inspect(t.Context(), ask("k", owner()))
				return quorum.OutcomeOf(err) != quorum.OutcomeUndelivered && quorum.OutcomeOf(err) != quorum.OutcomeUnknown
			})
		},
	})
}

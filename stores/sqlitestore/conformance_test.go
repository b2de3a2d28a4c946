//go:build linux

package sqlitestore

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/storetest"
)

// TestConformance runs the suite in WAL mode, with a clock that moves when told.
func TestConformance(t *testing.T) {
	var now *clock.Manual
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			now = &clock.Manual{}
			return open(t, world(t, now), newPath(t))
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			return open(t, world(t, now), first.(*Store).file.path)
		},
		Advance: func(d time.Duration) { now.Advance(d) },
	})
}

// TestConformanceInRealTime runs it in rollback mode, in a database of the
// user's own.
func TestConformanceInRealTime(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		New:      func(t *testing.T) quorum.Store { return over(t, database(t, newPath(t), "delete")) },
		Parallel: true,
	})
}

package filestore

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/storetest"
)

func TestConformance(t *testing.T) {
	var now *clock.Manual
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			now = &clock.Manual{}
			return open(t, newDir(t), now)
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			return open(t, first.(*Store).dir.path, now)
		},
		Advance: func(d time.Duration) { now.Advance(d) },
	})
}

func TestConformanceInRealTime(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		New:      func(t *testing.T) quorum.Store { return open(t, newDir(t), clock.System()) },
		Parallel: true,
	})
}

//go:build linux

package sqlitestore

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/storetest"
)

func TestConformance(t *testing.T) {
	for _, journal := range journals {
		t.Run(journal, func(t *testing.T) {
			var now *clock.Manual
			over := func(t *testing.T, path string) quorum.Store {
				s, err := newStore(context.Background(), world(t, now), "host", database(t, path, journal))
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			storetest.Run(t, storetest.Factory{
				New: func(t *testing.T) quorum.Store {
					now = &clock.Manual{}
					return over(t, newPath(t))
				},
				Second:  func(t *testing.T, first quorum.Store) quorum.Store { return over(t, first.(*Store).file.path) },
				Advance: func(d time.Duration) { now.Advance(d) },
			})
		})
	}
}

func TestConformanceInRealTime(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		New:      func(t *testing.T) quorum.Store { return open(t, world(t, clock.System()), newPath(t)) },
		Parallel: true,
	})
}

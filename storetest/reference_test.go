package storetest

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
)

// The suite must pass the model that it compares every store with.
func TestModelKeepsTheContract(t *testing.T) {
	var now *reference
	Run(t, Factory{
		New: func(*testing.T) (s quorum.Store) {
			now, s = newReference(time.Unix(1_800_000_000, 0))
			return s
		},
		Second:  func(_ *testing.T, first quorum.Store) quorum.Store { return first },
		Advance: func(d time.Duration) { now.advance(d) },
		Restart: func(*testing.T, quorum.Store) {
			now.mu.Lock()
			defer now.mu.Unlock()
			now.rec = model.Record{}
			now.rec.Restart("run again " + time.UnixMicro(int64(now.now)).String())
			now.names = map[string]*model.Name{}
		},
	})
}

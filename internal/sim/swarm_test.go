package sim

import (
	"testing"

	"github.com/quorumlock/quorum/internal/core"
)

// All orders are drawn, and each can be asked for.
func TestRandomDrawsAndKeepsOrders(t *testing.T) {
	drawn := map[core.Order]int{}
	for seed := range uint64(60) {
		drawn[Random(Config{}, Seeded(seed)).Order]++
		for o := core.InOrder; o <= core.AllAtOnce; o++ {
			c := Random(Config{Order: o, KeepOrder: true}, Seeded(seed))
			if c.Order != o || c.Work.AnyWay != 0 {
				t.Fatalf("seed %d: asked for %v, got %v, and %d of a million clients use any", seed, o, c.Order, c.Work.AnyWay)
			}
		}
	}
	for o := core.InOrder; o <= core.AllAtOnce; o++ {
		if drawn[o] < 10 {
			t.Errorf("%v was drawn in %d of 60 worlds", o, drawn[o])
		}
	}
}

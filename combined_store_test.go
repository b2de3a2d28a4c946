package quorum_test

import (
	"fmt"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// The composite is a store (design D3), so it passes the suite of stores.

func TestCombinedStoreKeepsTheContract(t *testing.T) {
	c := &clock.Manual{}
	storetest.Run(t, storetest.Factory{
		New:     func(t *testing.T) quorum.Store { return combine(t, memories(c, "n", 5)...) },
		Advance: c.Advance,
	})
}

func TestNestedCombinedStoreKeepsTheContract(t *testing.T) {
	c := &clock.Manual{}
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			var zones []quorum.Store
			for _, zone := range []string{"a", "b", "c"} {
				zones = append(zones, combine(t, memories(c, zone, 3)...))
			}
			return combine(t, zones...)
		},
		Advance: c.Advance,
	})
}

func memories(c clock.Clock, prefix string, n int) []quorum.Store {
	var stores []quorum.Store
	for i := range n {
		stores = append(stores, memstore.New(fmt.Sprint(prefix, i), memstore.WithClock(c)))
	}
	return stores
}

func combine(t *testing.T, members ...quorum.Store) quorum.Store {
	t.Helper()
	s, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

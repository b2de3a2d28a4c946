package storetest_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/storetest"
)

// manual returns a factory of stores that count by a clock of their own.
func manual(wrap func(*MapStore) quorum.Store) storetest.Factory {
	c := &clock.Manual{}
	start := time.Unix(1_800_000_000, 0)
	return storetest.Factory{
		New: func(*testing.T) quorum.Store {
			return wrap(&MapStore{Now: func() time.Time { return start.Add(time.Duration(c.Now())) }})
		},
		Advance: c.Advance,
		Second:  func(_ *testing.T, first quorum.Store) quorum.Store { return first },
	}
}

func TestR55MapStoreKeepsTheContract(t *testing.T) {
	storetest.Run(t, manual(func(s *MapStore) quorum.Store { return s }))
}

func TestR55MapStoreInRealTime(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		New:      func(*testing.T) quorum.Store { return &MapStore{Now: time.Now} },
		Parallel: true,
	})
}

func TestR56SuiteHasSixtyNamedChecks(t *testing.T) {
	names := storetest.Names()
	if len(names) < 60 {
		t.Errorf("the suite has %d checks, want at least 60", len(names))
	}
	seen := map[string]bool{}
	for _, n := range names {
		if seen[n] {
			t.Errorf("two checks are called %q", n)
		}
		seen[n] = true
	}
}

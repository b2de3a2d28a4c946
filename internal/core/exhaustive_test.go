package core_test

import (
	"flag"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

var deep = flag.Int("deep", 0, "visit up to this many million worlds in each exhaustive search, instead of the few of a normal run")

var (
	two     = []core.Mode{core.Exclusive, core.Exclusive}
	lagging = [nodes]int64{0, 0, 1} // the third store knows more than the first two
	twice   = [most]uint32{2, 2}
)

// Every search has two clients and three stores. max is in thousands of worlds;
// a search that it does not cut short has seen all that the scope allows.
var scopes = []struct {
	max int
	scope
}{
	{800 / 4, scope{name: "in order, all troubles", modes: two, anytime: true,
		left: budget{Unknown: 9, Late: 1, Double: 1, Extend: 1}}},
	{800 / 4, scope{name: "in order, the last store ahead", modes: two, counters: lagging, anytime: true,
		left: budget{Unknown: 9, Late: 1, Double: 1, Extend: 1}}},
	{400 / 4, scope{name: "first then rest", order: core.FirstThenRest, modes: two, anytime: true,
		left: budget{Unknown: 9, Late: 1, Extend: 1}}},
	{800 / 4, scope{name: "all at once, stores silent", order: core.AllAtOnce, modes: two, anytime: true, left: budget{Unknown: 9}}},
	{400 / 4, scope{name: "all at once, doubled", order: core.AllAtOnce, modes: two, anytime: true, left: budget{Double: 1}}},
	{400 / 4, scope{name: "calls that outlive their limit", modes: two, counters: lagging, anytime: true, left: budget{Slow: 2, Double: 1, Extend: 1}}},
	{400 / 4, scope{name: "fresh names: counters dropped, steps apart", modes: two, anytime: true,
		left: budget{Unknown: 1, Late: 1, Extend: 1, Drop: 2}}},
	{400 / 4, scope{name: "a writer, then a reader", modes: []core.Mode{core.Exclusive, core.Shared}, anytime: true, left: budget{Unknown: 2, Double: 1, Extend: 1}}},
	{400 / 4, scope{name: "two rounds", modes: two, attempts: twice, anytime: true, release: true, left: budget{Unknown: 3, Late: 1, Double: 1}}},
	{400 / 4, scope{name: "one holder at a time", modes: two, attempts: twice, overlap: true, release: true,
		left: budget{Unknown: 2, Late: 1, Lapse: 2, Return: 1, Extend: 1}}},
	{400 / 4, scope{name: "nothing left behind", modes: two, attempts: twice, tidy: true, release: true,
		left: budget{Unknown: 2, Late: 1, Undelivered: 1, Cancel: 1, Return: 1}}},
}

func TestExhaustive(t *testing.T) {
	for _, s := range scopes {
		t.Run(s.name, func(t *testing.T) {
			limit := s.max * 1000
			if *deep > 0 {
				limit = *deep * 1_000_000
			}
			began := time.Now()
			states, cut, found := s.search(limit)
			if found != nil {
				t.Fatal(s.tell(found))
			}
			t.Logf("%d worlds in %v, complete %v", states, time.Since(began).Round(time.Second), !cut)
		})
	}
}

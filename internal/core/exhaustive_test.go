package core_test

import (
	"flag"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

var deep = flag.Int("deep", 0, "give each exhaustive search its larger budget, and stop it at this many million worlds")

var (
	two     = []core.Mode{core.Exclusive, core.Exclusive}
	lagging = [nodes]int64{0, 0, 1} // the third store knows more than the first two
	twice   = [most]uint32{2, 2}
)

// patience is where a search of a normal run gives up, and fails: what the
// scopes below allow, a normal run sees whole.
const patience = 3_000_000

// Every search has two clients and three stores. What it has seen without
// being cut short is all that the scope allows. deep is its larger budget.
var scopes = []struct {
	scope
	deep budget
}{
	{scope{name: "in order, stores silent", modes: two, anytime: true, left: budget{Unknown: 9}},
		budget{Unknown: 9, Late: 1, Double: 1}},
	{scope{name: "in order, the last store ahead, silent", modes: two, counters: lagging, anytime: true, left: budget{Unknown: 9}},
		budget{Unknown: 9, Late: 1, Double: 1}},
	{scope{name: "in order, doubled and late", modes: two, anytime: true, left: budget{Unknown: 1, Late: 1, Double: 1}},
		budget{Unknown: 2, Late: 1, Double: 1, Extend: 1}},
	{scope{name: "in order, extension and repair", modes: two, anytime: true, left: budget{Extend: 1}},
		budget{Unknown: 9, Extend: 1}},
	{scope{name: "first then rest", order: core.FirstThenRest, modes: two, anytime: true, left: budget{Unknown: 1}},
		budget{Unknown: 9, Double: 1}},
	{scope{name: "all at once", order: core.AllAtOnce, modes: two, anytime: true}, budget{Unknown: 9}},
	{scope{name: "all at once, the last store ahead", order: core.AllAtOnce, modes: two, counters: lagging, anytime: true},
		budget{Unknown: 1, Late: 1}},
	{scope{name: "calls outlive their limit", modes: two, counters: lagging, anytime: true, left: budget{Slow: 2}},
		budget{Slow: 2, Double: 1}},
	{scope{name: "fresh names: counters dropped, steps apart", modes: two, anytime: true, left: budget{Unknown: 1, Drop: 2}},
		budget{Unknown: 2, Late: 1, Drop: 3}},
	{scope{name: "repair where no counter is left", modes: two, anytime: true, left: budget{Extend: 1, Drop: 2}},
		budget{Extend: 1, Double: 1, Drop: 2}},
	{scope{name: "a writer and a reader", modes: []core.Mode{core.Exclusive, core.Shared}, anytime: true, left: budget{Unknown: 1, Double: 1}},
		budget{Unknown: 2, Double: 1, Extend: 1}},
	{scope{name: "two rounds", modes: two, attempts: twice, anytime: true, release: true, left: budget{Unknown: 1}},
		budget{Unknown: 3, Late: 1, Double: 1}},
	{scope{name: "two rounds, doubled", modes: two, attempts: twice, anytime: true, release: true, left: budget{Double: 1}},
		budget{Unknown: 1, Double: 1}},
	{scope{name: "one holder at a time", modes: two, overlap: true, release: true, left: budget{Unknown: 1, Lapse: 1, Extend: 1}},
		budget{Unknown: 2, Late: 1, Lapse: 2, Extend: 1}},
	{scope{name: "one holder at a time, two rounds", modes: two, attempts: twice, overlap: true, release: true, left: budget{Unknown: 2, Late: 1}},
		budget{Unknown: 3, Late: 1, Slow: 1, Lapse: 1}},
	{scope{name: "nothing left behind", modes: two, tidy: true, release: true, left: budget{Unknown: 1, Cancel: 1, Late: 1}},
		budget{Unknown: 2, Late: 1, Double: 1, Cancel: 1, Return: 1}},
	{scope{name: "nothing left behind, two rounds", modes: two, attempts: twice, trouble: 1, tidy: true, release: true, left: budget{Unknown: 1, Undelivered: 1}},
		budget{Unknown: 2, Late: 1, Undelivered: 1, Cancel: 1, Return: 1}},
}

// TestExhaustive tries every order of events of each scope. The deep run is
// for people:
//
//	go test ./internal/core -run TestExhaustive -v -timeout 2h -deep 20
func TestExhaustive(t *testing.T) {
	for _, s := range scopes {
		t.Run(s.name, func(t *testing.T) {
			limit := patience
			if *deep > 0 {
				limit, s.left = *deep*1_000_000, s.deep
			}
			began := time.Now()
			states, cut, found := s.search(limit)
			if found != nil {
				t.Fatal(s.tell(found))
			}
			if cut && *deep == 0 {
				t.Errorf("there are more than %d worlds: docs/claims.md says that all are seen", limit)
			}
			t.Logf("%d worlds in %v, complete %v", states, time.Since(began).Round(time.Second), !cut)
		})
	}
}

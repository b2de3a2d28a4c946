package core_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Changes of mode, with three stores: every order of events. Beside the other
// scopes, because a promotion is a second attempt, whose worlds are many.
var modeScopes = []struct {
	scope
	deep budget
}{
	{scope{name: "promotion beside a reader", modes: readers, anytime: true, left: budget{Promote: 1}},
		budget{Promote: 2, Unknown: 1}},
	{scope{name: "both readers are promoted", modes: readers, overlap: true, left: budget{Promote: 2}},
		budget{Promote: 2, Unknown: 1}},
	{scope{name: "promotion beside a writer, silent stores", modes: readerWriter, anytime: true, left: budget{Promote: 1, Unknown: 1}},
		budget{Promote: 1, Unknown: 2, Double: 1}},
	{scope{name: "promotion, doubled", modes: readerWriter, overlap: true, left: budget{Promote: 1, Double: 1}},
		budget{Promote: 1, Double: 1, Late: 1, Unknown: 1}},
	{scope{name: "promotion, one holder at a time", modes: readerWriter, overlap: true, release: true, left: budget{Promote: 1, Lapse: 1}},
		budget{Promote: 1, Lapse: 1, Unknown: 1, Extend: 1}},
	{scope{name: "demotion beside a reader", modes: []core.Mode{core.Exclusive, core.Shared}, overlap: true, left: budget{Demote: 1, Unknown: 1}},
		budget{Demote: 1, Promote: 1, Unknown: 1, Double: 1}},
	{scope{name: "demotion beside a writer, doubled", modes: two, anytime: true, left: budget{Demote: 1, Double: 1}},
		budget{Demote: 1, Double: 1, Unknown: 1}},
	{scope{name: "a promotion leaves nothing behind", modes: readers, tidy: true, release: true, left: budget{Promote: 1, Return: 1}},
		budget{Promote: 1, Return: 1, Unknown: 1}},
}

var (
	readers      = []core.Mode{core.Shared, core.Shared}
	readerWriter = []core.Mode{core.Shared, core.Exclusive}
)

// TestR32ExhaustiveModes is to changes of mode what TestExhaustive is to the
// rest.
func TestR32ExhaustiveModes(t *testing.T) {
	for _, s := range modeScopes {
		t.Run(s.name, func(t *testing.T) {
			limit := 233_333 // some have no end worth waiting for
			if *deep > 0 {
				limit, s.left = *deep*1_000_000, s.deep
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

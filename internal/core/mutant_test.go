package core_test

import (
	"slices"
	"testing"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// A checker that nothing fails is no evidence. Each scope here is small, holds
// with the rules as they are, and is broken once the rule is left out.

type mutant struct {
	name  string
	scope scope
	bugs  core.Bugs
	spoil func(*model.Name, *core.Request)
}

var mutants = []mutant{
	{name: "no write-back", bugs: core.BugNoWriteBack,
		scope: scope{modes: two, counters: lagging, left: budget{Unknown: 2}, anytime: true}},
	{name: "write-back without owner check", bugs: core.BugWriteBackUnowned,
		scope: scope{modes: two, counters: lagging, left: budget{Unknown: 2}, anytime: true}},
	{name: "answer not compared with the floor", bugs: core.BugAnswerNotCompared,
		scope: scope{modes: two, counters: lagging, left: budget{Unknown: 1, Double: 1}, anytime: true}},
	{name: "one owner for all attempts", bugs: core.BugOneOwner,
		scope: scope{modes: two, attempts: [most]uint32{2}, trouble: 1, left: budget{Unknown: 3, Late: 1}, overlap: true, release: true}},
	{name: "void answer counts", bugs: core.BugVoidCounts,
		scope: scope{modes: two, attempts: [most]uint32{2}, trouble: 1, left: budget{Slow: 1, Unknown: 2}, overlap: true, release: true}},
	{name: "unknown counted as no", bugs: core.BugUnknownIsNo,
		scope: scope{modes: two, left: budget{Unknown: 1, Return: 1}, release: true, tidy: true}},
	{name: "roll-back on the caller's context", bugs: core.BugCallersContext,
		scope: scope{modes: two, left: budget{Cancel: 1}, release: true, tidy: true}},
	{name: "late grant above the token kept", bugs: core.BugLateGrantKept,
		scope: scope{order: core.AllAtOnce, counters: lagging, modes: two[:1], release: true, tidy: true}},
	{name: "repair that increments", spoil: func(_ *model.Name, r *core.Request) {
		if r.Kind == core.Repair {
			r.Kind = core.New
		}
	}, scope: scope{modes: two, left: budget{Extend: 1}, anytime: true}},
	{name: "repair let in above its token", spoil: func(n *model.Name, r *core.Request) {
		if r.Kind == core.Repair {
			n.Counter = min(n.Counter, r.Floor)
		}
	}, scope: scope{modes: two, left: budget{Extend: 1}, anytime: true}},
	{name: "one owner for all changes of mode", bugs: core.BugOneOwner,
		scope: scope{modes: readers, left: budget{Promote: 1}, overlap: true}},
	{name: "a promotion that failed is undone by release", bugs: core.BugUndoByRelease,
		scope: scope{modes: []core.Mode{core.Shared, core.Exclusive}, left: budget{Promote: 1, Unknown: 1}, overlap: true, release: true}},
	{name: "alone until the demotion is confirmed", bugs: core.BugDemoteLate,
		scope: scope{modes: []core.Mode{core.Exclusive, core.Shared}, left: budget{Demote: 1, Unknown: 1}, overlap: true}},
	{name: "promotion beside other readers", spoil: func(n *model.Name, r *core.Request) {
		if r.Kind == core.Convert && r.Mode == core.Exclusive {
			n.Votes = slices.DeleteFunc(n.Votes, func(v model.Vote) bool { return v.Owner.ID != r.Owner.ID })
		}
	}, scope: scope{modes: readers, left: budget{Promote: 1}, overlap: true}},
	{name: "demotion that forgets that a writer was here", spoil: func(n *model.Name, r *core.Request) {
		if r.Kind == core.Convert && r.Mode == core.Shared {
			n.Writer = false
		}
	}, scope: scope{modes: []core.Mode{core.Exclusive, core.Shared}, left: budget{Demote: 1}, anytime: true}},
}

// enough is more than any of these searches needs.
const enough = 1_000_000

func TestMutants(t *testing.T) {
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			sound := m.scope
			states, cut, found := sound.search(enough)
			if found != nil {
				t.Fatalf("with every rule in place: %s", sound.tell(found))
			}
			if cut {
				t.Fatalf("the scope is too large to say that it is sound: %d worlds", states)
			}
			broken := m.scope
			broken.bugs, broken.spoil = m.bugs, m.spoil
			seen, _, found := broken.search(enough)
			if found == nil {
				t.Fatalf("not seen in %d worlds", seen)
			}
			t.Logf("sound in all %d worlds; seen after %d:\n%s", states, seen, broken.tell(found))
		})
	}
}

package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// mutantCase is a known mistake, the checkers of which one must see it, and
// the world in which it shows, where that is not any world.
type mutantCase struct {
	name     string
	bugs     core.Bugs
	mutant   Mutant
	checkers []Checker
	base     Config
	plan     Plan
}

// hard is a world for mistakes that show only when leases end early and
// messages come late: the stores' clocks leave their bound, so that only the
// order of tokens is checked.
var hard = Config{Stores: 3, Clients: 5, Keys: 1, TTL: time.Second, MaxTTL: 2 * time.Second, Unsteady: true, Duration: 20 * time.Second}

var mutantCases = []mutantCase{
	{name: "core: no write-back", bugs: core.BugNoWriteBack, checkers: []Checker{Order, Unique}},
	{name: "core: refused write-back counts", bugs: core.BugWriteBackUnowned, checkers: []Checker{Order, Unique}, base: hard},
	{name: "core: answers not compared", bugs: core.BugAnswerNotCompared, checkers: []Checker{Order, Unique}, base: hard},
	{name: "core: one owner for all attempts", bugs: core.BugOneOwner, checkers: []Checker{Exclusion, Sharing}},
	{name: "core: unknown counted as no", bugs: core.BugUnknownIsNo, checkers: []Checker{LeftBehind}},
	{name: "core: roll-back on the caller's context", bugs: core.BugCallersContext, checkers: []Checker{LeftBehind}},
	{name: "core: validity from the reply", bugs: core.BugValidityFromReply, checkers: []Checker{Remaining, Exclusion}},
	{name: "core: no drift allowance", bugs: core.BugNoDrift, checkers: []Checker{Remaining, Exclusion}},
	{name: "core: early read of steps", bugs: core.BugEarlyStepRead, checkers: []Checker{Order, Unique, Progress}},
	{name: "core: void answers count", bugs: core.BugVoidCounts, checkers: []Checker{Exclusion, Sharing}},
	{name: "core: late grant kept", bugs: core.BugLateGrantKept, checkers: []Checker{Stray}},
	{name: "core: a lost lease revives", bugs: core.BugReviveLost, checkers: []Checker{Exclusion, Sharing, AfterEnd}},
}

func init() {
	expect := map[Mutant][]Checker{
		NoTombstones: {LeftBehind}, RepairSteps: {Order, Unique, Exclusion, Stray}, ForgetsUnseen: {Exclusion, Sharing, Order, Unique},
		RollsBackUnseen: {Exclusion, Sharing, Order, Unique}, ShortQuarantine: {Exclusion, Sharing, Order, Unique},
		ExtendRevives: {Exclusion, Sharing, Order, Unique}, ReleaseTakesAll: {Exclusion, Sharing, Order}, RaiseUnread: {Order, Unique},
		DisjointQuorums: {Exclusion, Sharing, Order, Unique}, CallsWithoutLimit: {Progress}, FenceLooksAway: {Fence},
		RefillsOutliveClose: {AfterEnd}, SharesWithAll: {Sharing},
	}
	for m := NoMutant + 1; m < mutants; m++ {
		c := mutantCase{name: "store, driver or world: " + m.String(), mutant: m, checkers: expect[m]}
		if m == DisjointQuorums {
			c.base.Rule = core.Tabulate(5, func(s core.Set) bool { return s.Len() >= 2 })
		}
		mutantCases = append(mutantCases, c)
	}
}

// kill looks for a seed that the mutant does not survive.
func (m *mutantCase) kill(most int) (seeds int, by Checker, others string) {
	seen := map[Checker]bool{}
	for seed := range most {
		cfg := m.base
		cfg.Bugs, cfg.Mutant = m.bugs, m.mutant
		r := RunSeed(uint64(seed), cfg)
		for _, v := range r.Violations {
			if slices.Contains(m.checkers, v.Checker) {
				return seed + 1, v.Checker, others
			}
			if !seen[v.Checker] {
				seen[v.Checker] = true
				others += fmt.Sprintf(" %v@%d", v.Checker, seed)
			}
		}
	}
	return 0, 0, others
}

// Each known mistake, switched on alone, is seen by a checker that should see
// it. A checker that no mistake fails is no evidence.
func TestR90MutantsAreKilled(t *testing.T) {
	var table strings.Builder
	for i := range mutantCases {
		m := &mutantCases[i]
		start := time.Now()
		seeds, by, others := m.kill(500)
		if seeds == 0 {
			t.Errorf("%s survives: %s %v", m.name, others, time.Since(start))
			continue
		}
		fmt.Printf("%s %v %d %s %v\n", m.name, by, seeds, others, time.Since(start))
		fmt.Fprintf(&table, "| %s | %v | %d | %s %v\n", m.name, by, seeds, others, time.Since(start))
	}
	t.Logf("| mutant | killed by | after seeds |\n%s", table.String())
}

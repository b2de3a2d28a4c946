package sim

import (
	"fmt"
	"os"
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
	steady   bool   // nothing goes wrong in it
	scenario string // the one that shows it, where no seed does
}

// crowd is a world in which a name changes hands all the time.
func crowd(late uint64, only ...FaultKind) Config {
	c := Config{
		Stores: 3, Clients: 5, Keys: 1, TTL: time.Second, MaxTTL: time.Second, Duration: 15 * time.Second, Only: only,
		Work: Work{Think: 50 * time.Millisecond, Hold: time.Second, Shared: 100_000, Brief: 300_000, AnyWay: million},
	}
	c.Plan.Noise = Noise{Base: time.Millisecond, Spread: 50 * time.Millisecond, Loss: 20_000, Late: late, LateBy: time.Second, Pauses: 5_000}
	return c
}

// lapses is a crowd whose votes vanish and whose requests come late and twice;
// only the order of tokens is checked.
func lapses() Config {
	c := crowd(100_000, Drop, Drop, Slow)
	c.Unsteady = true
	c.Plan.Noise.Double, c.Plan.Noise.Spread = 300_000, 200*time.Millisecond
	return c
}

// zones is a crowd of two levels.
func zones() Config {
	c := crowd(100_000)
	c.Stores, c.Zones = 9, 3
	return c
}

func with(c Config, change func(*Config)) Config {
	change(&c)
	return c
}

// The rest of a case's fields but its name; the worlds are chosen so that each
// mistake shows soon.
var mutantCases = []mutantCase{
	{name: "no write-back", bugs: core.BugNoWriteBack, checkers: []Checker{Order, Unique}},
	{name: "a refused write-back counts", bugs: core.BugWriteBackUnowned, checkers: []Checker{Order, Unique}, base: lapses()},
	{name: "answers of an extension not compared", checkers: []Checker{Unique}, scenario: "naive-answers-not-compared"},
	{name: "one owner for all attempts", bugs: core.BugOneOwner, checkers: []Checker{Exclusion, Sharing}, base: crowd(100_000)},
	{name: "unknown counted as no", bugs: core.BugUnknownIsNo, checkers: []Checker{LeftBehind}},
	{name: "roll-back on the caller's context", bugs: core.BugCallersContext, checkers: []Checker{LeftBehind}},
	{name: "validity from the reply", bugs: core.BugValidityFromReply, checkers: []Checker{Remaining}},
	{name: "no drift allowance", bugs: core.BugNoDrift, checkers: []Checker{Remaining}},
	{name: "steps read before the quarantine is over", checkers: []Checker{Order}, scenario: "early-read-of-steps"},
	{name: "void answers count", bugs: core.BugVoidCounts, checkers: []Checker{Exclusion, Sharing}, base: crowd(100_000)},
	{name: "a late grant kept", bugs: core.BugLateGrantKept, checkers: []Checker{Stray}, base: crowd(0, Slow)},
	{name: "a lost lease revives", bugs: core.BugReviveLost, checkers: []Checker{AfterEnd}},
	{mutant: NoTombstones, checkers: []Checker{LeftBehind}},
	{mutant: ForgetsUnseen, checkers: []Checker{Exclusion, Sharing, Order, Unique}, base: crowd(0, Forget, Partition)},
	{mutant: RollsBackUnseen, checkers: []Checker{Exclusion, Sharing, Order, Unique}, base: crowd(0, RollBack, Partition)},
	{mutant: ShortQuarantine, checkers: []Checker{Exclusion, Sharing, Order, Unique}, base: crowd(0, Forget, Partition)},
	{mutant: ExtendRevives, checkers: []Checker{LeftBehind}},
	{mutant: ReleaseTakesAll, checkers: []Checker{Exclusion, Sharing}, base: crowd(100_000)},
	{mutant: RaiseUnread, checkers: []Checker{Order}, scenario: "leaving-unread"},
	{mutant: DisjointQuorums, checkers: []Checker{Exclusion, Sharing, Order, Unique}, base: Config{Rule: core.Tabulate(5, func(s core.Set) bool { return s.Len() >= 2 })}},
	{mutant: CallsWithoutLimit, checkers: []Checker{Progress}},
	{mutant: FenceLooksAway, checkers: []Checker{Fence}},
	{mutant: RefillsOutliveClose, checkers: []Checker{AfterEnd}, base: with(crowd(0, Restart), func(c *Config) { c.Work.Close = 900_000 })},
	{name: "no write-back, in composites", bugs: core.BugNoWriteBack, checkers: []Checker{Order, Unique}, base: Config{Stores: 9, Zones: 3}},
	{mutant: InnerRollsBack, checkers: []Checker{LeftBehind}, base: zones()},
	{mutant: SharesWithAll, checkers: []Checker{Sharing}},
	{mutant: PromotesBesideReaders, checkers: []Checker{Sharing}, base: readersAndWriters()},
	{mutant: DemotesUnmarked, checkers: []Checker{Order}, base: readersAndWriters()},
	{name: "a promotion that failed is undone by release", bugs: core.BugUndoByRelease, checkers: []Checker{Sharing}, base: few()},
	{name: "a writer thinks itself alone until its demotion is confirmed", bugs: core.BugDemoteLate, checkers: []Checker{Sharing}, base: readersAndWriters()},
	{name: "who waits in line keeps the votes that it has", bugs: core.BugNoYield, checkers: []Checker{Starved}, base: lines(core.AllAtOnce), steady: true},
	{name: "every store gives a ticket of its own", bugs: core.BugOwnTickets, checkers: []Checker{Starved}, base: lines(core.AllAtOnce), steady: true},
	{name: "a yield without an attempt of its own", bugs: core.BugYieldsInPlace, checkers: []Checker{Exclusion, Sharing, Remaining}, base: with(crowd(100_000), queued)},
	{mutant: TurnsNeverEnd, checkers: []Checker{Starved}, base: dying()},
	{mutant: HeadsStay, checkers: []Checker{Starved}, base: lines(core.AllAtOnce), steady: true},
	{mutant: ForceSpares, checkers: []Checker{Exclusion, Sharing}, base: forceful()},
	{mutant: TwinsUnseen, checkers: []Checker{Exclusion, Sharing, Order, Unique}, base: crowd(0, Twins, Partition)},
	{name: "assumption A8: a store is two servers", checkers: []Checker{Exclusion, Sharing, Order, Unique}, base: crowd(0, Split)},
	{mutant: OwnersRepeat, name: "assumption A10: owners repeat", checkers: []Checker{Exclusion, Sharing, Unique}},
	{name: "assumption A4: clocks run apart by more than the allowance", checkers: []Checker{Exclusion}, scenario: "clock-too-fast"},
	{name: "assumption A5: a client's clock stops while its machine sleeps", checkers: []Checker{Exclusion, Sharing}, base: crowd(0, Doze)},
	{name: "assumption A9: votes are deleted by hand", checkers: []Checker{Exclusion, Sharing}, base: crowd(0, Drop)},
}

// kill looks for a seed that the mutant does not survive.
func (m *mutantCase) kill(most int) (seeds int, by Checker, others string) {
	if m.scenario != "" {
		s, err := Named(m.scenario)
		if err != nil {
			panic(err)
		}
		return 1, s.Play().Violations[0].Checker, " scenario"
	}
	seen := map[Checker]bool{}
	for seed := range most {
		cfg := m.base
		cfg.Bugs, cfg.Mutant = m.bugs, m.mutant
		run := RunSeed
		if m.steady {
			run = steadily
		}
		r := run(uint64(seed), cfg)
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
// it, within the seeds that are tried. A checker that no mistake fails is no
// evidence. The table stands in docs/simulation.md, which -rewrite brings up to
// date; how many seeds it took is not compared, since any change shifts it.
func TestR90MutantsAreKilled(t *testing.T) {
	const file, begin, end = "../../docs/simulation.md", "| mistake | seen by | after |\n| --- | --- | --- |\n", "\n\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, _ := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no table of mistakes", file)
	}
	var table []string
	for i := range mutantCases {
		m := &mutantCases[i]
		if m.name == "" {
			m.name = m.mutant.String()
		}
		seeds, by, others := m.kill(500)
		if seeds == 0 {
			t.Errorf("%s survives; other checkers saw:%s", m.name, others)
			continue
		}
		row := fmt.Sprintf("| %s | %v |", m.name, by)
		if !strings.Contains(old, row) && !*rewrite {
			t.Errorf("%s does not say %q: run with -rewrite", file, row)
		}
		table = append(table, row+" "+m.after(seeds)+" |")
	}
	t.Logf("\n%s%s", begin, strings.Join(table, "\n"))
	if *rewrite {
		if err := os.WriteFile(file, []byte(before+begin+strings.Join(table, "\n")+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func (m *mutantCase) after(seeds int) string {
	switch {
	case m.scenario != "":
		return "scenario `" + m.scenario + "`"
	case seeds == 1:
		return "1 seed"
	}
	return fmt.Sprintf("%d seeds", seeds)
}

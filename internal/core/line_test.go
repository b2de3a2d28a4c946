package core_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

var lineScopes = []lineScope{
	{name: "in order", bound: time.Second},
	{name: "first then rest", order: core.FirstThenRest, bound: time.Second},
	{name: "all at once", order: core.AllAtOnce, bound: time.Second},
	{name: "in order, a wake lost", left: lineBudget{Wake: 1}, bound: 2 * time.Second},
	{name: "in order, a request lost", left: lineBudget{Request: 1}, bound: 6 * time.Second},
	{name: "in order, an answer lost", left: lineBudget{Answer: 1}, bound: 6 * time.Second},
	{name: "in order, a death", left: lineBudget{Death: 1}, bound: 10 * time.Second},
}

// Two who wait in three stores, and each single fault at every moment, in every
// order of events that deviates from the usual one so many times: three, or as
// QUORUM_LINE_DEVIATIONS says. docs/simulation.md says how far it was looked.
func TestLineExhaustive(t *testing.T) {
	deviations := 3
	if n, err := strconv.Atoi(os.Getenv("QUORUM_LINE_DEVIATIONS")); err == nil {
		deviations = n
	}
	for _, sc := range lineScopes {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			states, longest, found := sc.search(deviations)
			if found != "" {
				t.Fatal(found)
			}
			t.Logf("%d worlds, the longest took %v", states, longest)
		})
	}
}

// walk plays moves drawn by rng until all is over, and tells how it went wrong.
func (sc *lineScope) walk(rng *rand.Rand) (took time.Duration, calls int, wrong string) {
	w, err := sc.start()
	var path []lineMove
	for err == nil && !w.done() {
		if len(path) > 3000 {
			err = errors.New("no end after 3000 moves")
			break
		}
		all := w.moves()
		m := all[rng.IntN(len(all))]
		if m.trouble() && rng.IntN(4) > 0 {
			continue
		}
		path = append(path, m)
		if m.what == "carries out" {
			calls++
		}
		w, err = w.play(sc, m)
	}
	if err != nil {
		return 0, calls, sc.retell(path) + err.Error()
	}
	return time.Duration(w.now), calls, ""
}

func (m lineMove) trouble() bool { return strings.HasPrefix(m.what, "loses") || m.what == "dies" }

var lineWalks = []lineScope{
	{name: "calm", bound: time.Second},
	{name: "all at once", order: core.AllAtOnce, bound: time.Second},
	{name: "first then rest", order: core.FirstThenRest, bound: time.Second},
	{name: "clocks differ", bound: time.Second, late: [nodes]time.Duration{0, time.Hour, -time.Hour}},
	{name: "wakes lost", left: lineBudget{Wake: 9}, bound: 12 * time.Second},
	{name: "requests and answers lost", left: lineBudget{Request: 2, Answer: 2}, bound: 20 * time.Second},
	{name: "a death", left: lineBudget{Death: 1, Wake: 1}, bound: 20 * time.Second},
	{name: "everything", left: lineBudget{Death: 1, Wake: 3, Request: 2, Answer: 2}, bound: 30 * time.Second},
	{name: "three", third: true, bound: time.Second},
	{name: "three, all at once, everything", order: core.AllAtOnce, third: true, left: lineBudget{Death: 1, Wake: 3, Request: 2, Answer: 2}, bound: 30 * time.Second},
	{name: "readers", modes: [waiters]core.Mode{core.Shared, core.Shared}, left: lineBudget{Wake: 1, Request: 1}, bound: 20 * time.Second},
	{name: "a reader and a writer", modes: [waiters]core.Mode{core.Shared, core.Exclusive}, left: lineBudget{Wake: 1, Answer: 1}, bound: 20 * time.Second},
}

func TestLineWalks(t *testing.T) {
	for _, sc := range lineWalks {
		t.Run(sc.name, func(t *testing.T) {
			t.Parallel()
			var longest time.Duration
			most := 0
			for seed := range uint64(1000) {
				took, calls, wrong := sc.walk(rand.New(rand.NewPCG(seed, 6)))
				if wrong != "" {
					t.Fatalf("seed %d:\n%s", seed, wrong)
				}
				longest, most = max(longest, took), max(most, calls)
			}
			t.Logf("the longest took %v, the most costly %d requests", longest, most)
		})
	}
}

// A rule left out must show: as nobody getting on, or as time that passes where
// none need. That a yield needs an attempt of its own shows only with requests
// that are late, and that turns end only with a third waiter; the model's tests
// show the latter.
func TestLineMutants(t *testing.T) {
	for _, m := range []struct {
		name  string
		scope lineScope
	}{
		{"no yield", lineScope{order: core.AllAtOnce, third: true, bound: time.Second, bugs: core.BugNoYield}},
		{"every store gives its own ticket", lineScope{order: core.AllAtOnce, third: true, bound: time.Second, bugs: core.BugOwnTickets}},
		{"a denial undoes a wake", lineScope{bound: 1, bugs: core.BugDenialUndoesWake}},
		{"an older waiter does not displace", lineScope{order: core.AllAtOnce, bound: time.Second, spoil: func(r *core.Request) {
			if r.Wait == core.WaitQueue && r.Owner.ID[0] == 1 {
				r.Ticket += int64(time.Hour / time.Microsecond) // where it comes later, it stays behind
			}
		}}},
	} {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			sound := m.scope
			sound.bugs, sound.spoil = 0, nil
			for seed := range uint64(1000) {
				if _, _, wrong := sound.walk(rand.New(rand.NewPCG(seed, 7))); wrong != "" {
					t.Fatalf("with every rule in place, seed %d: %s", seed, wrong)
				}
			}
			for seed := range uint64(20_000) {
				if _, _, wrong := m.scope.walk(rand.New(rand.NewPCG(seed, 7))); wrong != "" {
					t.Logf("seen by seed %d: %s", seed, wrong[max(0, len(wrong)-400):])
					return
				}
			}
			t.Error("not seen")
		})
	}
}

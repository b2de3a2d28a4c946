package quorumsim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// careless works on when its lease is lost, and never looks.
func careless(j *Job) {
	for {
		lease, err := j.Acquire("key", Ask{NoRenew: true})
		if err != nil {
			continue
		}
		for range 3 {
			j.Sleep(2 * time.Second)
			_ = j.Write("resource", lease.Token())
		}
		_ = lease.Release()
	}
}

// lockless takes no for an answer, and works without the lock.
func lockless(j *Job) {
	token := int64(1)
	if lease, err := j.Acquire("key", Ask{Try: true}); err == nil {
		token = lease.Token()
	}
	_ = j.Write("resource", token)
	j.Sleep(time.Second)
}

// patient holds without renewing for as long as it may believe.
func patient(j *Job) {
	for {
		lease, err := j.Acquire("key", Ask{NoRenew: true})
		if err == nil {
			_ = lease.Sleep(time.Hour)
			_ = lease.Release()
		}
	}
}

// Every bug is found by what it breaks, within a bounded number of seeds, and
// the same world without the bug is clean.
func TestR80PlantedBugsAreFound(t *testing.T) {
	all := []int{0, 1, 2, 3, 4}
	for _, c := range []struct {
		bug   string
		cfg   Config
		plant func(*Config)
		want  string
		seeds uint64 // enough
	}{
		{"job writes after loss, to a resource without a fence", Config{Job: careless, TTL: 3 * time.Second},
			func(c *Config) { c.NoFence = []string{"resource"} }, "stale", 1},
		{"job works without the lock", Config{Job: worker},
			func(c *Config) { c.Job = lockless }, "forged", 1},
		{"no write-back", Config{Job: crowd, TTL: time.Second, Duration: 15 * time.Second, Swarm: true, Stores: 3, Clients: 4, Order: AllAtOnce},
			func(c *Config) { c.bugs = core.BugNoWriteBack }, "order", 10},
		{"validity from the answer", Config{Job: patient, TTL: 8 * time.Second, Faults: []Fault{{Kind: Slow, By: 900 * time.Millisecond}}},
			func(c *Config) { c.bugs = core.BugValidityFromReply }, "exclusion", 20},
		{"no allowance for drift", Config{Job: patient, TTL: 30 * time.Second, Clients: 5, Duration: 3 * time.Minute, Faults: []Fault{{Kind: Drift, PPM: -9_900, Clients: []int{0, 1}}}},
			func(c *Config) { c.bugs = core.BugNoDrift }, "exclusion", 10},
		{"a store that lost everything votes at once", Config{Job: patient, Faults: []Fault{{Kind: Forget, Stores: all[:3], From: 20 * time.Second, To: 21 * time.Second}}},
			func(c *Config) { c.mutant = sim.ForgetsUnseen }, "exclusion", 1},
		{"readers beside a writer", Config{Job: worker, Duration: 2 * time.Minute},
			func(c *Config) { c.mutant = sim.SharesWithAll }, "sharing", 10},
		{"unknown is no", Config{Job: crowd, TTL: time.Second, Duration: 15 * time.Second, Swarm: true, Stores: 3, Clients: 4},
			func(c *Config) { c.bugs = core.BugUnknownIsNo }, "left behind", 20},
	} {
		t.Run(c.bug, func(t *testing.T) {
			for seed := range c.seeds {
				r := mustRun(t, c.cfg, seed)
				if found := append(r.Violations, Overlap(r.History)...); len(found) > 0 {
					t.Fatalf("without the bug, seed %d: %v", seed, found)
				}
			}
			c.plant(&c.cfg)
			byWorld := func(v Violation) bool { return v.Check == c.want }
			for seed := range c.seeds {
				r := mustRun(t, c.cfg, seed)
				if !slices.ContainsFunc(r.Violations, byWorld) {
					continue
				}
				// What a history can show it must show.
				if ofHistory(c.want) && !slices.ContainsFunc(Overlap(r.History), byWorld) {
					t.Errorf("seed %d: the report says %v, the history %v", seed, r.Violations, Overlap(r.History))
				}
				t.Logf("seed %d: %v", seed, r.Violations[slices.IndexFunc(r.Violations, byWorld)])
				return
			}
			t.Errorf("not found in %d seeds", c.seeds)
		})
	}
}

func ofHistory(check string) bool {
	return slices.Contains([]string{"exclusion", "sharing", "order", "unique", "stale", "forged"}, check)
}

// The world looks at what clients believe, Overlap at the history alone. They
// agree, also where assumptions are broken.
func TestR80OverlapAgreesWithTheWorld(t *testing.T) {
	verdict := func(all []Violation) string {
		var checks []string
		for _, v := range all {
			if ofHistory(v.Check) {
				checks = append(checks, v.Check+" "+v.Key)
			}
		}
		slices.Sort(checks)
		return strings.Join(slices.Compact(checks), "\n")
	}
	rest := []Fault{
		{Kind: Doze, From: 5 * time.Second, To: 20 * time.Second, Clients: []int{0, 1}},
		{Kind: Drift, From: 12 * time.Second, To: 40 * time.Second, PPM: -300_000, Clients: []int{1, 2}},
		{Kind: ClockRate, From: 10 * time.Second, To: 50 * time.Second, PPM: 500_000},
		{Kind: ClockStep, From: 30 * time.Second, By: 20 * time.Second, Stores: []int{0, 1, 2}},
		{Kind: Drop, From: 45 * time.Second},
	}
	refuted := 0
	for seed := range uint64(60) {
		cfg := Config{Job: patient, TTL: 5 * time.Second, Faults: rest[seed%5:], mutant: sim.Mutant(seed % 2 * uint64(sim.ForgetsUnseen))}
		if seed%3 == 0 {
			cfg.Job = worker
		}
		r := mustRun(t, cfg, seed)
		ours, theirs := verdict(Overlap(r.History)), verdict(r.Violations)
		if ours != theirs {
			t.Fatalf("seed %d: by the history\n%s\nby the world\n%s\n%s", seed, ours, theirs, r.History)
		}
		if ours != "" {
			refuted++
		}
	}
	if refuted < 20 {
		t.Errorf("%d of 60 runs refuted: this shows nothing", refuted)
	}
}

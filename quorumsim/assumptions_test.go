package quorumsim

import (
	"maps"
	"math/bits"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/sim"
)

// These tests are the column "what breaks without it" of docs/safety.md: each
// world is clean while the assumption holds, and breaks the claim that rests on
// it when the assumption does not.

// breaks runs a world as it is, and with the assumption broken; want are the
// checks that fail then, each in one of the seeds at least, and no others.
func breaks(t *testing.T, kept Config, seeds uint64, brk func(*Config), want ...string) {
	t.Helper()
	broken := kept
	broken.Faults = slices.Clone(kept.Faults)
	brk(&broken)
	seen := map[string]bool{}
	for seed := range seeds {
		r := mustRun(t, kept, seed)
		if found := append(r.Violations, Overlap(r.History)...); len(found) > 0 {
			t.Fatalf("seed %d, although the assumption holds: %v\n%s", seed, found, r.History)
		}
		if r.Acquired < 2 {
			t.Fatalf("seed %d: %d acquired: this shows nothing", seed, r.Acquired)
		}
		for _, v := range Overlap(mustRun(t, broken, seed).History) {
			seen[v.Check] = true
		}
	}
	got := slices.Sorted(maps.Keys(seen))
	if slices.Sort(want); !slices.Equal(got, want) {
		t.Errorf("without the assumption %q fail in %d seeds, want %q", got, seeds, want)
	}
}

var three = []int{0, 1, 2}

// A store that lost its votes and counters, and votes at once: another takes
// the lock of a holder that goes on, and tokens begin again.
func TestR89A2StoresForgetUnnoticed(t *testing.T) {
	kept := Config{
		Faults: []Fault{{Kind: Forget, Stores: three, From: 2500 * time.Millisecond, To: 3 * time.Second}},
		Script: `
			0s  0 acquire k
			1s  0 release k
			2s  0 acquire k
			4s  1 acquire k wait=30s
			58s 0 release k
			58s 1 acquire k
		`, Duration: 2 * time.Minute,
	}
	breaks(t, kept, 3, func(c *Config) { c.mutant = sim.ForgetsUnseen }, "exclusion", "order", "unique")
	kept.Faults[0] = Fault{Kind: RollBack, Stores: three, From: 2500 * time.Millisecond, To: 3 * time.Second, By: time.Second}
	breaks(t, kept, 3, func(c *Config) { c.mutant = sim.RollsBackUnseen }, "exclusion", "order", "unique")
}

// All that is left of the order of tokens, when nobody remembers, is that the
// clock does not go back.
func TestR89A3NobodyRemembersAndTheClockWentBack(t *testing.T) {
	kept := Config{Stores: 1, TTL: 5 * time.Second, Duration: 2 * time.Minute,
		Faults: []Fault{{Kind: Forget, From: 5 * time.Second, To: 8 * time.Second}},
		Script: `
			1s  0 acquire k
			2s  0 release k
			50s 1 acquire k
		`}
	breaks(t, kept, 3, func(c *Config) {
		c.Faults = append(c.Faults, Fault{Kind: ClockStep, From: 6 * time.Second, By: -20 * time.Minute})
	}, "order")
}

// A lone store that restarts with its memory leaves above its own step. If it
// loses everything before the clock has reached that step, it leaves below.
func TestR89A3LoneStoreRestartsAndForgetsWithinAStep(t *testing.T) {
	kept := Config{Stores: 1, TTL: 2 * time.Second, MaxTTL: 2 * time.Second,
		Faults: []Fault{{Kind: Forget, From: 8 * time.Second, To: 9 * time.Second}},
		Script: `
			1s 0 acquire k
			2s 0 release k
			4s 0 acquire k
			7s 0 release k
			9s 1 acquire k
		`}
	breaks(t, kept, 3, func(c *Config) {
		c.Faults = append(c.Faults, Fault{Kind: Restart, From: 3 * time.Second, To: 4 * time.Second})
	}, "order")
}

// A clock that runs slow by more than the allowance lets its process believe
// when the stores have given the lock away.
func TestR89A4ClocksRunApart(t *testing.T) {
	kept := Config{Job: patient, TTL: 10 * time.Second, Faults: []Fault{{Kind: Drift, PPM: -9_900, Clients: []int{0}}}}
	breaks(t, kept, 10, func(c *Config) { c.Faults[0].PPM = -150_000 }, "exclusion")
	kept.Faults = []Fault{{Kind: ClockRate, PPM: 9_900, Stores: three}}
	breaks(t, kept, 10, func(c *Config) { c.Faults[0].PPM = 200_000 }, "exclusion")
}

// A clock that stands still while the machine sleeps does not see the end.
func TestR89A5ClockSleepsWithTheMachine(t *testing.T) {
	kept := Config{Job: patient, TTL: 8 * time.Second, Clients: 2,
		Faults: []Fault{{Kind: Pause, From: 3 * time.Second, To: 25 * time.Second, Clients: []int{0}}}}
	breaks(t, kept, 10, func(c *Config) { c.Faults[0].Kind = Doze }, "exclusion")
}

// Stores whose clocks jump ahead end votes that the holder believes in.
func TestR89A6ClocksJumpAhead(t *testing.T) {
	kept := Config{Job: patient, TTL: 10 * time.Second, Faults: []Fault{{Kind: ClockStep, From: 4 * time.Second, By: -time.Minute, Stores: three}}}
	breaks(t, kept, 5, func(c *Config) { c.Faults[0].By = time.Minute }, "exclusion")
}

// Clients that count other votes than each other: the same as a strategy by
// which two quorums need not share a store.
func TestR89A7QuorumsShareNoStore(t *testing.T) {
	kept := Config{Job: patient, Clients: 2, TTL: 5 * time.Second, Faults: []Fault{
		{Kind: Partition, From: 10 * time.Second, To: 30 * time.Second, Clients: []int{0}, Stores: []int{2, 3, 4}},
		{Kind: Partition, From: 10 * time.Second, To: 30 * time.Second, Clients: []int{1}, Stores: []int{0, 1}},
	}}
	breaks(t, kept, 5, func(c *Config) {
		c.Strategy = func(v uint32, _ int) bool { return bits.OnesCount32(v) >= 2 }
		c.mutant = sim.DisjointQuorums
	}, "exclusion", "order", "unique")
}

// Votes deleted by hand let another in until the holder renews.
func TestR89A9VotesDeletedByHand(t *testing.T) {
	kept := Config{TTL: 15 * time.Second, Script: `
		0s  0 acquire k
		1s  1 acquire k
		20s 0 release k
	`}
	breaks(t, kept, 3, func(c *Config) { c.Faults = []Fault{{Kind: Drop, From: 2 * time.Second}} }, "exclusion")
}

// A clock that jumps ahead for longer than counters rest, and back before a
// call sees it, takes the counters with it.
func TestR89A6ClocksLeapUnseen(t *testing.T) {
	kept := Config{
		Faults: []Fault{{Kind: ClockLeap, From: 5 * time.Second, By: 9 * time.Minute}},
		Script: `
			0s  0 acquire k
			2s  0 release k
			10s 1 acquire k
		`}
	breaks(t, kept, 3, func(c *Config) { c.Faults[0].By = 12 * time.Minute }, "order", "unique")
}

// A member that became two servers, as an old primary that goes on after a
// promotion, votes twice. One server under two names does not: the later of
// the two is not counted.
func TestR89A8OneMemberIsTwoServers(t *testing.T) {
	kept := Config{Clients: 2,
		Faults: []Fault{{Kind: Twins, From: 3 * time.Second, To: 50 * time.Second, Stores: []int{0, 1}}},
		Script: `
			0s  0 acquire k
			5s  1 acquire k
			30s 0 release k
			31s 0 acquire k
		`}
	breaks(t, kept, 3, func(c *Config) {
		c.Faults = []Fault{{Kind: Split, From: 3 * time.Second, Stores: three, Clients: []int{1}}}
	}, "exclusion", "order", "unique")
}

// Counters deleted by hand or evicted begin again.
func TestR89A9CountersDeletedByHand(t *testing.T) {
	kept := Config{Script: `
		0s  0 acquire k
		2s  0 release k
		10s 1 acquire k
	`}
	breaks(t, kept, 3, func(c *Config) { c.Faults = []Fault{{Kind: Evict, From: 5 * time.Second}} }, "order", "unique")
}

// Two owners with the same 128 bits are one to every store.
func TestR89A10RandomNumbersRepeat(t *testing.T) {
	kept := Config{Script: `
		0s  0 acquire k
		1s  1 acquire k
		20s 0 release k
	`}
	breaks(t, kept, 3, func(c *Config) { c.mutant = sim.OwnersRepeat }, "exclusion", "order", "unique")
}

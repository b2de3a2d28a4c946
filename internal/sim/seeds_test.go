package sim

import (
	"os"
	"slices"
	"strconv"
	"testing"
)

// firstSeed is where the seeds of this run begin: QUORUM_SIM_SEED, a number or
// the hash of a commit, so that every commit tries others and each can be tried
// again.
func firstSeed(t *testing.T) uint64 {
	text := os.Getenv("QUORUM_SIM_SEED")
	if text == "" {
		return 1
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil {
		return n
	}
	n, err := strconv.ParseUint(text[:min(len(text), 12)], 16, 64)
	if err != nil {
		t.Fatalf("QUORUM_SIM_SEED %q is neither a number nor the hash of a commit", text)
	}
	return n
}

// seedCount is how many are tried: QUORUM_SIM_SEEDS, or what a CI run can afford.
func seedCount(t *testing.T) uint64 {
	if n, err := strconv.ParseUint(os.Getenv("QUORUM_SIM_SEEDS"), 10, 64); err == nil {
		return n
	}
	if testing.Short() {
		return 200
	}
	return 2000
}

// No seed breaks a claim, and one in twenty is run twice to see that a seed
// repeats.
func TestR90Seeds(t *testing.T) {
	first, n := firstSeed(t), seedCount(t)
	t.Logf("seeds %d to %d (QUORUM_SIM_SEED, QUORUM_SIM_SEEDS)", first, first+n-1)
	total, failed := &Report{}, 0
	for i := range n {
		seed := first + i
		r := RunSeed(seed, Config{})
		total.Add(r)
		if i%20 == 0 {
			if again := RunSeed(seed, Config{}); again.Hash != r.Hash {
				t.Errorf("seed %d is not repeated: hash %x and then %x", seed, r.Hash, again.Hash)
			}
		}
		if len(r.Violations) > 0 {
			least := Shrink(r, func(cfg Config) *Report { return Run(cfg, Seeded(seed)) })
			t.Errorf("seed %d: %v\nreplay it by: %s\nthe smallest list of faults that still does it:\n%v", seed, r.Violations[0], Replay(seed), least.Plan)
			if failed++; failed == 3 {
				break
			}
			total.Violations = nil
		}
	}
	t.Logf("\n%v", total)
	if total.Acquired == 0 || total.Refused == 0 || total.Refills == 0 {
		t.Error("the seeds show nothing: nobody acquired, or no fence refused, or no store was brought back")
	}
	broken := []FaultKind{Doze, Drop, Evict, ClockLeap, Split} // what breaks an assumption
	for k, n := range total.Faults {
		if k := FaultKind(k); n == 0 && !slices.Contains(broken, k) {
			t.Errorf("no seed has the fault %v", k)
		}
	}
}

// A trace that is kept changes nothing, and a run that was recorded is repeated
// from its list.
func TestTraceAndRecordingRepeatTheRun(t *testing.T) {
	for seed := range uint64(20) {
		plain := RunSeed(seed, Config{})
		traced := RunSeed(seed, Config{Trace: true})
		if plain.Hash != traced.Hash || plain.Events != traced.Events {
			t.Errorf("seed %d: %x without a trace, %x with one", seed, plain.Hash, traced.Hash)
		}
		rec := &Recorder{From: Seeded(seed)}
		cfg := Random(Config{}, Seeded(seed))
		recorded := Run(cfg, rec)
		if replayed := Run(cfg, Listed(rec.List)); replayed.Hash != recorded.Hash || recorded.Hash != plain.Hash {
			t.Errorf("seed %d: %x recorded, %x from the list", seed, recorded.Hash, replayed.Hash)
		}
	}
}

// Seeds differ in what they do.
func TestSeedsDiffer(t *testing.T) {
	seen := map[uint64]uint64{}
	for seed := range uint64(50) {
		r := RunSeed(seed, Config{})
		if other, ok := seen[r.Hash]; ok {
			t.Errorf("seeds %d and %d are one run", other, seed)
		}
		seen[r.Hash] = seed
	}
}

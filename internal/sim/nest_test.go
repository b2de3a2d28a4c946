package sim

import "testing"

// A set of zones, each of them a set of stores, keeps every claim, also where
// stores forget: a composite is a store.
func TestR90Composites(t *testing.T) {
	total := &Report{}
	for seed := range seedCount(t) / 16 {
		for _, base := range []Config{{Stores: 9, Zones: 3}, {Stores: 6, Zones: 2}} {
			r := RunSeed(seed, base)
			total.Add(r)
			if len(r.Violations) > 0 {
				least := Shrink(r, func(cfg Config) *Report { return Run(cfg, Seeded(seed)) })
				t.Fatalf("seed %d, %d zones: %v\n%v", seed, base.Zones, r.Violations[0], least.Plan)
			}
		}
	}
	if total.Acquired == 0 || total.Refills == 0 {
		t.Error("nobody acquired, or no store was brought back")
	}
	t.Logf("\n%v", total)
}

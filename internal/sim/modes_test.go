package sim

import (
	"testing"

	"github.com/quorumlock/quorum/internal/core"
)

// readersAndWriters is a world in which one name is read by five and written by
// three, and leases change their mode all the time.
func readersAndWriters() Config {
	c := crowd(50_000)
	c.Clients = 8
	c.Work.Shared, c.Work.Promote, c.Work.Demote = 600_000, 400_000, 400_000
	return c
}

// few is the same with so few clients that a reader is often the only one.
func few() Config {
	c := readersAndWriters()
	c.Clients = 3
	return c
}

// forceful is a world in which every fifth lock is taken by force.
func forceful() Config {
	c := readersAndWriters()
	c.Clients, c.Work.Force, c.Work.Try = 5, 200_000, 100_000
	return c
}

// Whoever takes a name by force has a higher token than everybody before, and
// those whose votes it took cannot renew beside it, whatever goes wrong.
func TestR09ForceUnderFaults(t *testing.T) {
	n := seedCount(t) / 10
	total := &Report{}
	for seed := range n {
		base := forceful()
		if seed%2 == 1 {
			base.Stores = 5
		}
		r := RunSeed(uint64(seed), base)
		if len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations[0])
		}
		total.Add(r)
	}
	t.Logf("%d runs, %d acquired, lost by force %d", n, total.Acquired, total.Lost[core.LostForced])
	if total.Lost[core.LostForced] < int(n) {
		t.Error("the seeds show little")
	}
}

// A reader never sees a writer, whatever goes wrong, while leases are promoted
// and demoted.
func TestR32ReadersAndWritersUnderFaults(t *testing.T) {
	n := seedCount(t) / 4
	total := &Report{}
	for seed := range n {
		base := readersAndWriters()
		if seed%4 > 1 {
			base = few()
		}
		if seed%2 == 1 {
			base.Stores = 5
		}
		r := RunSeed(uint64(seed), base)
		if len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v", seed, r.Violations[0])
		}
		total.Add(r)
	}
	t.Logf("%d runs, %d acquired, %d promoted, %d demoted, %d stayed", n, total.Acquired, total.Promoted, total.Demoted, total.Stayed)
	if total.Promoted < int(n)/4 || total.Demoted < int(n) || total.Stayed < int(n) {
		t.Error("the seeds show little")
	}
}

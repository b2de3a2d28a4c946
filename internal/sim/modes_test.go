package sim

import "testing"

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

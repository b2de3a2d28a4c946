//go:build !race

// The race detector has pools forget some of what they are given.

package redisstore_test

import (
	"fmt"
	"runtime/metrics"
	"testing"
)

// TestCycleAllocates counts what an acquire and a release of an uncontended key
// allocate in the whole process, go-redis's part included, and the goroutines
// that they start.
func TestCycleAllocates(t *testing.T) {
	for _, tc := range []struct{ stores, most int }{{3, 70}, {5, 110}} {
		t.Run(fmt.Sprint("stores=", tc.stores), func(t *testing.T) {
			l, _ := nodes(t, tc.stores)
			for range 50 {
				once(t, l, "k") // makes connections, loads scripts, grows stacks
			}
			started := goroutines(t)
			const runs = 200
			allocs := testing.AllocsPerRun(runs, func() { once(t, l, "k") })
			started = goroutines(t) - started
			t.Logf("%.0f allocations and %.3f goroutines a cycle", allocs, float64(started)/runs)
			if allocs > float64(tc.most) {
				t.Errorf("%.0f allocations a cycle, want at most %d", allocs, tc.most)
			}
			if started > runs/2 { // one a call would be ten times that; a pause of the machine ends idle ones
				t.Errorf("%d goroutines were started in %d cycles; calls are made by those that are there", started, runs)
			}
		})
	}
}

// goroutines is how many have been started since the process began.
func goroutines(t *testing.T) uint64 {
	t.Helper()
	sample := []metrics.Sample{{Name: "/sched/goroutines-created:goroutines"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		t.Fatalf("this Go counts no goroutines: %v", sample[0].Value.Kind())
	}
	return sample[0].Value.Uint64()
}

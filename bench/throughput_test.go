//go:build unix

package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// throughput measures W2: many goroutines of one process, each with a name of
// its own that was used before, or with a new name every time.
func throughput(b *testing.B, n, workers int, fresh bool, p plan, rows []row) *setting {
	t := &setting{name: fmt.Sprintf("N = %d, %d goroutines%s", n, workers, map[bool]string{true: ", fresh names"}[fresh]), rows: rows}
	t.measured = b.Run(fmt.Sprintf("throughput/N=%d/%d goroutines/fresh=%v", n, workers, fresh), func(b *testing.B) {
		began := time.Now()
		s := start(b, n, 0)
		open := map[string]locks{}
		for _, r := range rows {
			open[r.name] = r.open(s)
			s.warm(r, slices.Repeat([]locks{open[r.name]}, workers)...)
		}
		t.rounds(began, p.rounds, func(r row, round int) sample {
			used := 0 // the names that warm has used
			if fresh {
				used = round + 1
			}
			m, _ := s.sample(r, load{
				locks: []locks{open[r.name]}, workers: workers, key: keys(r, used, fresh), length: p.length,
			})
			return m
		})
	})
	return t
}

var throughputColumns = []column{
	{"cycles/s", "rate", whole}, {"× limit", "× limit rate", hundred}, {"× redsync", "× redsync rate", tenth}, {"±", "± rate", percent},
	{"cycle p50 ms", "cycle", millis}, {"p99 ms", "cycle p99", millis}, {"success", "success", percent},
	{"allocations", "allocs", whole}, {"client CPU µs", "client CPU", whole}, {"servers' CPU µs", "server CPU", whole},
	{"commands", "commands", tenth}, {"server reads", "reads", hundred},
}

// plan is how long a workload is measured.
type plan struct {
	rounds int
	length time.Duration // of one sample
}

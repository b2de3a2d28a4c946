//go:build unix

package bench

import (
	"fmt"
	"testing"
	"time"
)

// latency measures W1, W5 and W6: one goroutine and a lock that nobody else
// wants, with n servers and a delay.
func latency(b *testing.B, n int, delay time.Duration, p plan, rows []row) *setting {
	t := &setting{name: fmt.Sprintf("N = %d", n), rows: rows}
	t.measured = b.Run(fmt.Sprintf("latency/N=%d/%v each way", n, delay), func(b *testing.B) {
		began := time.Now()
		s := start(b, n, delay)
		open := map[string]locks{}
		for _, r := range rows {
			open[r.name] = r.open(s)
			s.warm(r, open[r.name])
		}
		t.rounds(began, p.rounds, func(r row, round int) sample {
			m, _ := s.sample(r, load{locks: []locks{open[r.name]}, workers: 1, key: keys(r, 0, false), length: p.length})
			return m
		})
	})
	return t
}

var latencyColumns = []column{
	{"cycle µs", "cycle", whole}, {"× limit", "× limit cycle", hundred}, {"±", "± cycle", percent}, {"p99", "cycle p99", whole}, {"acquire", "acquire", whole}, {"release", "release", whole},
	{"allocations", "allocs", whole}, {"goroutines started", "goroutines", tenth},
	{"commands", "commands", tenth}, {"bytes", "bytes", whole}, {"client CPU µs", "client CPU", whole}, {"servers' CPU µs", "server CPU", whole},
}

//go:build unix

package bench

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// hold is how long a worker keeps the lock that others want.
const hold = time.Millisecond

// many is how often each of many workers is to hold the lock while it is measured:
// in turns the fewest and the most then differ by a twentieth, and not by a third.
const many = 25

// contention measures W3: workers that want one lock, each with clients of its
// own, as if it were a process of its own. Whoever still waits at the end is
// cancelled, and its wait counts.
func contention(b *testing.B, n, workers int, delay time.Duration, p plan, rows []row) *setting {
	t := &setting{name: fmt.Sprintf("N = %d, %d workers%s", n, workers, map[bool]string{true: ", 1 ms each way"}[delay > 0]), rows: rows}
	t.measured = b.Run(fmt.Sprintf("contention/N=%d/%d workers/%v each way", n, workers, delay), func(b *testing.B) {
		began := time.Now()
		s := start(b, n, delay)
		open := map[string][]locks{}
		for _, r := range rows {
			for range workers {
				open[r.name] = append(open[r.name], r.open(s))
			}
			s.warm(r, open[r.name]...)
		}
		t.rounds(began, p.rounds, func(r row, round int) sample {
			name := keys(r, round+1, false)(0, 0)
			m, cycles := s.sample(r, load{
				locks: open[r.name], workers: workers, hold: hold, length: p.length, cut: true,
				key: func(int, int) string { return name },
			})
			m["commands a node"] = m["commands"] / float64(n)
			m.turns(cycles, workers, p.length)
			return m
		})
	})
	return t
}

// turns adds what the order of the cycles shows: how the lock went from hand to
// hand.
func (m sample) turns(all []cycle, workers int, length time.Duration) {
	var handOffs, others, holds []time.Duration
	times := make([]float64, workers) // that each worker held
	longest, overlaps := time.Duration(0), 0
	last := cycle{worker: -1}
	for _, c := range all {
		longest = max(longest, c.held-c.asked) // also of one that was cancelled
		if c.left == 0 {
			continue // never held
		}
		times[c.worker]++
		holds = append(holds, c.left-c.held) // a timer may be late
		if last.worker >= 0 {
			handOffs = append(handOffs, c.held-last.left)
			if c.worker != last.worker {
				others = append(others, c.held-last.left)
			}
			if c.held < last.left {
				overlaps++
			}
		}
		last = c
	}
	fewest, most := math.Inf(1), 0.0
	for _, n := range times {
		fewest, most = min(fewest, n), max(most, n)
	}
	m["hand-off"], m["hand-off p99"] = percentile(handOffs, 0.5), percentile(handOffs, 0.99)
	m["other"] = float64(len(others)) / float64(max(len(handOffs), 1))
	m["fairness"] = fewest / max(most, 1)
	m["longest"] = micros(longest)
	m["overlaps"] = float64(overlaps)
	m["round trips"] = m["hand-off"] / m["release"]
	turn := percentile(holds, 0.5) + m["hand-off"]
	m["of bound"] = m["rate"] * turn / 1e6
	m["longest / queue"] = m["longest"] / (float64(workers) * turn)
}

var contentionColumns = []column{
	{"acquisitions/s", "rate", whole}, {"± ", "± rate", percent},
	{"hand-off p50 µs", "hand-off", whole}, {"p99", "hand-off p99", whole}, {"in releases", "round trips", tenth}, {"to another worker", "other", percent},
	{"fewest/most", "fairness", hundred}, {"longest wait ms", "longest", millis}, {"of the queue", "longest / queue", tenth},
	{"commands a node", "commands a node", tenth}, {"overlaps", "overlaps", whole},
}

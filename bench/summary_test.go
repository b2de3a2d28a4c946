//go:build unix

package bench

import (
	"fmt"
	"math"
)

// sum makes the two tables that stand before all others: what is aimed at, and
// what a reader of README.md wants to know.
func (m *measured) sum() {
	targets := &table{head: []string{"aim", "at", "this run"}}
	for _, a := range m.aims() {
		if math.IsNaN(a.got) {
			continue // the workload was not asked for, or failed
		}
		met := "**missed**"
		if a.least && a.got >= a.bound || !a.least && a.got <= a.bound {
			met = "met"
		}
		sign := map[bool]string{true: "≥ ", false: "≤ "}[a.least]
		targets.add(a.what, sign+fmt.Sprint(a.bound), fmt.Sprintf("%.4g, %s", a.got, met))
	}
	m.show("targets", "What is aimed at", targets)

	out := &table{head: []string{"", byDefault.name, allAtOnce.name, redsyncPlain.name, redsyncRueidis.name}}
	for _, l := range []struct {
		what, setting, figure string
		form                  func(float64) string
	}{
		{"acquire and release, three servers, 1 ms each way, ms", "W5 N = 3", "cycle", millis},
		{"the same a second, 128 goroutines, three servers", "W2 N = 3, 128 goroutines", "rate", whole},
		{"the same, five servers", "W2 N = 5, 128 goroutines", "rate", whole},
		{"64 workers, one lock, three servers: longest wait, ms", "W3 N = 3, 64 workers", "longest", millis},
		{"fewest/most acquisitions of a worker", "W3 N = 3, 64 workers", "fairness", hundred},
		{"commands a server and acquisition", "W3 N = 3, 64 workers", "commands a node", tenth},
		{"one of five servers stalled: p99 of a cycle, ms", "W4 N = 5", "one stalled p99", millis},
	} {
		cells := []string{l.what}
		for _, row := range out.head[1:] {
			cells = append(cells, l.form(m.of(l.setting, row, l.figure)))
		}
		out.add(cells...)
	}
	m.show("summary", "In short", out)
}

// of is a figure of a setting, or NaN if it was not measured.
func (m *measured) of(setting, row, figure string) float64 {
	if t := m.settings[setting]; t != nil {
		return t.figure(row, figure)
	}
	return math.NaN()
}

// aim is a bound on a figure.
type aim struct {
	what  string
	least bool // the bound is a lower one
	bound float64
	got   float64
}

func (m *measured) aims() []aim {
	var all []aim
	most := func(bound, got float64, what string) { all = append(all, aim{what, false, bound, got}) }
	least := func(bound, got float64, what string) { all = append(all, aim{what, true, bound, got}) }
	for i, n := range []int{3, 5} {
		w1, w5 := fmt.Sprintf("W1 N = %d", n), fmt.Sprintf("W5 N = %d", n)
		most(1.05, m.of(w5, allAtOnce.name, "× limit cycle"), fmt.Sprintf("W5, N = %d: all at once, a cycle over the limit's", n))
		most(1.05, m.of(w5, allAtOnce.name, "× redsync cycle"), fmt.Sprintf("W5, N = %d: all at once, over redsync's", n))
		most(2.2, m.of(w5, firstRest.name, "× limit acquire"), fmt.Sprintf("W5, N = %d: first then rest, round trips to acquire", n))
		most([]float64{2.2, 3.3}[i], m.of(w5, inOrder.name, "× limit acquire"), fmt.Sprintf("W5, N = %d: in order, round trips to acquire", n))
		most([]float64{70, 110}[i], m.of(w1, byDefault.name, "allocs"), fmt.Sprintf("W1, N = %d: allocations a cycle", n))
		most(0.1, m.of(w1, byDefault.name, "goroutines"), fmt.Sprintf("W1, N = %d: goroutines started a cycle", n))
		for _, load := range []string{"128 goroutines", "1024 goroutines", "128 goroutines, fresh names", "1024 goroutines, fresh names"} {
			w2 := fmt.Sprintf("W2 N = %d, %s", n, load)
			least(0.7, m.of(w2, byDefault.name, "× limit rate"), w2+": rate over the limit's")
			least(3, m.of(w2, byDefault.name, "× redsync rate"), w2+": rate over redsync's")
			least(1, m.of(w2, byDefault.name, "rate")/m.of(w2, redsyncRueidis.name, "rate"), w2+": rate over that of redsync on rueidis")
		}
		rate := func(workers int) float64 {
			return m.of(fmt.Sprintf("W2 N = %d, %d goroutines", n, workers), byDefault.name, "rate")
		}
		least(0.9, rate(1024)/rate(128), fmt.Sprintf("W2, N = %d: rate at 1024 goroutines over that at 128", n))
	}
	for _, c := range []string{"N = 1, 64 workers", "N = 3, 8 workers", "N = 3, 64 workers", "N = 5, 64 workers"} {
		least(1, m.of("W3 "+c, byDefault.name, "other"), "W3, "+c+": hand-offs that go to another worker")
		least(0.9, m.of("W3 "+c, byDefault.name, "of bound"), "W3, "+c+": rate over 1 / (hold + hand-off)")
		least(0.95, m.of("W3 "+c, byDefault.name, "fairness"), "W3, "+c+": fewest/most")
		most(1.3, m.of("W3 "+c, byDefault.name, "longest / queue"), "W3, "+c+": longest wait over workers x (hold + hand-off)")
		most(3.2, m.of("W3 "+c, byDefault.name, "commands a node"), "W3, "+c+": commands a server and acquisition")
	}
	most(2.2, m.of("W3 N = 3, 64 workers, 1 ms each way", byDefault.name, "round trips"), "W3, 1 ms each way: a hand-off over a release, which is one round trip, p50")
	for _, st := range states[1:] {
		most(1.5, m.of("W4 N = 5", byDefault.name, st.name+" × healthy"), "W4, "+st.name+": p99 over the healthy one")
		least(1, m.of("W4 N = 5", byDefault.name, st.name+" success"), "W4, "+st.name+": success")
	}
	grown := func(r row, from string) {
		growth := func(r row) float64 { return m.of("W6 N = 9", r.name, "cycle") / m.of("W6 "+from, r.name, "cycle") }
		most(1.5, growth(r), "W6, "+r.name+": a cycle at N = 9 over one at "+from)
		most(1.1, growth(r)/growth(limit), "W6, "+r.name+": that growth over the limit's")
	}
	grown(allAtOnce, "N = 1")
	grown(firstRest, "N = 3") // at N = 1 it takes a round trip less
	const w7 = "N = 3"
	held := m.of("W7", w7, "leases")
	most(1, 10*m.of("W7", w7, "cores each"), fmt.Sprintf("W7, %s: the client's cores for 100,000 leases, by %.0f that are held", w7, held))
	most(1024, m.of("W7", w7, "bytes"), "W7, "+w7+": bytes of heap a lease, beyond the clients'")
	most(0, m.of("W7", w7, "late")+m.of("W7", w7, "lost"), "W7, "+w7+": renewals late")
	return all
}

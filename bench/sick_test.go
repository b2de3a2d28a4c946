//go:build unix

package bench

import (
	"slices"
	"testing"
	"time"
)

// learning is how long a client may take to notice what a server's state is.
const learning = time.Second

// state is a phase of W4.
type state struct {
	name       string
	begin, end func(s *servers)
}

var states = []state{
	{"healthy", func(*servers) {}, func(*servers) {}},
	{"one stalled", func(s *servers) { s.nodes[0].Stall() }, func(s *servers) { s.nodes[0].Resume() }},
	{"one dead", func(s *servers) { s.nodes[0].Stop() }, func(*servers) {}},
}

// sick measures W4: one goroutine over five servers, of which one is stopped as
// by a long pause, and then one is dead. The figures of each state carry its
// name; what begins within the first second of it counts for "first" alone.
func sick(b *testing.B, p plan, rows []row) *setting {
	t := &setting{name: "N = 5", rows: rows, samples: map[string][]sample{}}
	t.measured = b.Run("sick/N=5", func(b *testing.B) {
		s := start(b, 5, 0)
		open := map[string]locks{}
		for _, r := range rows {
			open[r.name] = r.open(s)
			s.warm(r, slices.Repeat([]locks{open[r.name]}, 16)...)
			t.samples[r.name] = []sample{{}}
		}
		for _, st := range states {
			st.begin(s)
			for _, r := range rows {
				names := keys(r, 0, false)
				cycles := load{
					locks: []locks{open[r.name]}, workers: 1, length: learning + p.length, skip: learning,
					key: func(_, cycle int) string { return names(cycle%16, 0) },
				}.run()
				t.samples[r.name][0].sick(st.name, cycles)
			}
			st.end(s)
		}
		for _, r := range rows {
			m := t.samples[r.name][0]
			for _, st := range states[1:] {
				m[st.name+" × healthy"] = m[st.name+" p99"] / m["healthy p99"]
			}
		}
	})
	return t
}

// sick adds what the cycles of a state show.
func (m sample) sick(state string, all []cycle) {
	var took []time.Duration
	good, counted := 0, 0
	for i, c := range all {
		if i == 0 {
			m[state+" first"] = micros(c.held - c.asked)
		}
		if c.asked < learning {
			continue
		}
		counted++
		if c.err == nil {
			good++
			took = append(took, c.held-c.asked+c.gone-c.left)
		}
	}
	m[state+" success"] = float64(good) / float64(counted)
	m[state+" p50"], m[state+" p99"] = percentile(took, 0.5), percentile(took, 0.99)
	m[state+" worst"] = percentile(took, 1)
}

func sickColumns() []column {
	var out []column
	for _, st := range states {
		out = append(out, column{st.name + ": first acquire ms", st.name + " first", millis},
			column{"p50 ms", st.name + " p50", millis}, column{"p99 ms", st.name + " p99", millis})
		if st.name != "healthy" {
			out = append(out, column{"× healthy", st.name + " × healthy", tenth})
		}
		out = append(out, column{"success", st.name + " success", percent})
	}
	return out
}

//go:build unix

package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	quick = flag.Bool("quick", false, "a first look: few rounds, short samples, few leases")
	only  = flag.String("only", "W1 W2 W3 W4 W5 W6 W7", "the workloads to measure")
	write = flag.Bool("write", false, "write the tables into README.md and docs/performance.md, and the plots into bench/results")
)

// millisecond is the delay of W5 and W6, each way.
const millisecond = time.Millisecond

// BenchmarkReport measures everything once and writes it down. It compares
// nothing with a limit: see the tests for what must hold.
func BenchmarkReport(b *testing.B) {
	redis.SetLogger(silence{}) // a server is killed on purpose
	m := &measured{b: b, settings: map[string]*setting{}, blocks: map[string]string{}}
	for _, w := range []struct {
		name    string
		measure func()
	}{{"W1", m.w1}, {"W2", m.w2}, {"W3", m.w3}, {"W4", m.w4}, {"W5", m.w5}, {"W6", m.w6}, {"W7", m.w7}} {
		if strings.Contains(*only, w.name) {
			w.measure()
		}
	}
	m.sum()
	if *write {
		if err := m.write("results", pages...); err != nil {
			b.Fatal(err)
		}
	}
}

// silence drops what go-redis says of servers that are down.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// measured is what a run measured.
type measured struct {
	b        *testing.B
	settings map[string]*setting // by workload and name
	blocks   map[string]string   // Markdown, by the name that the pages know it by
}

// keep prints a setting and keeps it for the summary and the pages. One that
// failed is left out, and the others are kept.
func (m *measured) keep(workload, title string, t *setting, columns []column) {
	if !t.measured {
		m.b.Logf("%s%s: not measured", title, t.name)
		return
	}
	m.settings[workload+" "+t.name] = t
	m.show(workload, title+t.name, t.figures(columns...))
}

// show prints a table and adds it to a block.
func (m *measured) show(block, title string, t *table) {
	text := "**" + title + "**\n\n" + t.String() + "\n"
	fmt.Println(text)
	m.blocks[block] += text
}

// plan is how a workload is measured in full, or in a hurry.
func (m *measured) plan(rounds int, length time.Duration) plan {
	if *quick {
		return plan{max(rounds/3, 1), length / 2}
	}
	return plan{rounds, length}
}

func (m *measured) w1() {
	for _, n := range []int{1, 3, 5} {
		t := latency(m.b, n, 0, m.plan(9, 150*time.Millisecond), rowsFor(n, []row{limit}, orders, redlock, lone))
		m.keep("W1", "Uncontended, on loopback, ", t, latencyColumns)
	}
}

func (m *measured) w2() {
	for _, n := range []int{1, 3, 5} {
		for _, workers := range []int{1, 16, 128, 1024} {
			for _, fresh := range []bool{false, true} {
				if n == 1 && workers != 128 || fresh && workers < 128 {
					continue
				}
				rows := rowsFor(n, []row{limit}, orders, redlock, lone)
				if fresh || workers == 1024 { // who opens a connection or a session for each has no place there
					rows = slices.DeleteFunc(rows, func(r row) bool { return r.lone })
				}
				length := 300 * time.Millisecond
				if workers == 1024 { // each is to come round often, once its stack has grown
					length *= 3
				}
				t := throughput(m.b, n, workers, fresh, m.plan(3, length), rows)
				m.keep("W2", "Throughput, ", t, throughputColumns)
			}
		}
	}
}

func (m *measured) w3() {
	for _, c := range []struct {
		n, workers int
		delay      time.Duration
	}{{1, 64, 0}, {3, 2, 0}, {3, 8, 0}, {3, 64, 0}, {5, 64, 0}, {3, 8, millisecond}, {3, 64, millisecond}} {
		rows := rowsFor(c.n, orders, redlock, lone)
		turn := 3500*time.Microsecond + 2*c.delay // about as long as one takes
		t := contention(m.b, c.n, c.workers, c.delay, m.plan(2, max(2*time.Second, time.Duration(many*c.workers)*turn)), rows)
		m.keep("W3", "Contention, ", t, contentionColumns)
	}
}

func (m *measured) w4() {
	m.keep("W4", "A sick server, ", sick(m.b, m.plan(1, 1500*time.Millisecond), slices.Concat(orders, redlock)), sickColumns())
}

func (m *measured) w5() {
	for _, n := range []int{3, 5} {
		t := latency(m.b, n, millisecond, m.plan(10, 300*time.Millisecond), slices.Concat([]row{limit}, orders, redlock))
		m.keep("W5", "Uncontended, 1 ms each way, ", t, latencyColumns[:5])
	}
}

// w6 has a column a number of servers instead of a table each.
func (m *measured) w6() {
	rows := rows6
	cycles, commands := &table{head: []string{"cycle, ms"}}, &table{head: []string{"commands a cycle"}}
	for _, r := range rows {
		cycles.add(r.name)
		commands.add(r.name)
	}
	for _, n := range servers6 {
		t := latency(m.b, n, millisecond, m.plan(8, 250*time.Millisecond), rows)
		if !t.measured {
			m.b.Logf("W6, %s: not measured", t.name)
			continue
		}
		m.settings["W6 "+t.name] = t
		for i, r := range rows {
			cycles.rows[i] = append(cycles.rows[i], millis(t.median(r.name, "cycle")))
			commands.rows[i] = append(commands.rows[i], tenth(t.median(r.name, "commands")))
		}
		cycles.head, commands.head = append(cycles.head, t.name), append(commands.head, t.name)
	}
	m.show("W6", "Uncontended, 1 ms each way, by the number of servers", cycles)
	m.show("W6", "The same", commands)
}

// What W6 measures.
var (
	servers6 = []int{1, 3, 5, 7, 9}
	rows6    = []row{limit, inOrder, firstRest, allAtOnce, redsyncPlain, redsyncRueidis}
)

// w7 has a column a number of servers, too: one shows what the client costs.
func (m *measured) w7() {
	leases, ttl := 100_000, 30*time.Second
	if *quick {
		leases = 20_000
	}
	t := &setting{samples: map[string][]sample{}}
	out := &table{head: []string{fmt.Sprintf("%d leases, TTL %v", leases, ttl)}}
	for _, c := range renewalColumns {
		out.add(c.head)
	}
	var notes string
	for _, n := range []int{1, 3} {
		name := fmt.Sprintf("N = %d", n)
		figures, why := renewal(m.b, n, leases, ttl)
		if why != "" {
			notes += fmt.Sprintf("%s: %s.\n", name, why)
		}
		t.samples[name] = []sample{figures}
		out.head = append(out.head, name)
		for i, c := range renewalColumns {
			out.rows[i] = append(out.rows[i], c.form(t.figure(name, c.figure)))
		}
	}
	m.settings["W7"] = t
	m.show("W7", "Many leases", out)
	if notes != "" {
		fmt.Println(notes)
		m.blocks["W7"] += notes
	}
}

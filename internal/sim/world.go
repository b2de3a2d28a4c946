package sim

import (
	"fmt"
	"strconv"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// World is one run: stores, clients, the network between them, and what goes
// wrong.
type World struct {
	cfg     Config
	choices Choices
	plan    Plan
	noise   Noise
	now     time.Duration // true time
	queue   queue
	made    uint32 // events so far, for the order of those of one instant
	hash    uint64

	nodes     []node
	clients   []*Client
	keys      []*name
	messages  []message
	free      []int32       // messages to use again
	calls     []core.Call   // being sent, and nothing between two events
	notices   []core.Notice // being told
	sent      uint64
	leases    int
	blocked   [2][]uint8 // asking, replying: by client and store, how many partitions stand between them
	clogged   []time.Duration
	lossy     []uint64
	echo      []time.Duration
	ended     bool // the faults have stopped
	deadline  time.Duration
	probes    int // acquisitions that must succeed now that all is calm
	refilling int
	zone      *core.Rule // of the stores of each zone
	only      *Set       // what all clients use where sets do not change

	same      int // events at one instant
	report    *Report
	trace     *Trace
	watch     func(Event)
	named     int  // keys that programs gave names to
	exclusion bool // claim 2 is checked
	order     bool // claim 1 is checked
}

// Run runs a world to its end. It panics on a configuration that
// [Config.Check] refuses.
func Run(cfg Config, choices Choices) *Report {
	w := NewWorld(cfg, choices)
	w.run()
	return w.report
}

// RunSeed runs a seed: everything is drawn from it but what base sets to
// anything but zero.
func RunSeed(seed uint64, base Config) *Report {
	r := Run(Random(base, Seeded(seed)), Seeded(seed))
	r.Seed = seed
	return r
}

// NewWorld builds a world that has not begun.
func NewWorld(cfg Config, choices Choices) *World {
	if err := cfg.Check(); err != nil {
		panic(err)
	}
	cfg = cfg.filled()
	w := &World{cfg: cfg, choices: choices, plan: cfg.Plan, hash: 0x2545f4914f6cdd1d, deadline: never}
	if cfg.Swarm {
		w.plan = drawPlan(&cfg, choices)
	}
	if w.plan.Noise.Double > 0 {
		w.cfg.Doubles = true
	}
	for _, f := range w.plan.Faults {
		w.cfg.Doubles = w.cfg.Doubles || f.Kind == Lossy || f.Kind == Echo
	}
	w.cfg.Plan, w.noise = w.plan, w.plan.Noise
	w.exclusion, w.order = !cfg.Unsteady, true
	w.report = &Report{Runs: 1, Plan: w.plan, Config: w.cfg}
	if cfg.Trace {
		w.trace = &Trace{Config: w.cfg, Plan: w.plan}
		w.report.Trace = w.trace
	}
	pairs := cfg.Clients * cfg.Stores
	w.blocked = [2][]uint8{make([]uint8, pairs), make([]uint8, pairs)}
	w.clogged = make([]time.Duration, pairs)
	w.lossy = make([]uint64, pairs)
	w.echo = make([]time.Duration, pairs)
	if cfg.Zones > 0 {
		w.zone = core.Majority(cfg.Stores / cfg.Zones)
	}
	w.only = &Set{Print: 1, Rule: cfg.Rule}
	w.nodes = make([]node, cfg.Stores)
	for i := range w.nodes {
		w.startNode(i)
	}
	for i := range cfg.Keys {
		w.keys = append(w.keys, &name{text: "k" + strconv.Itoa(i), ask: askOrder(i, cfg.members()), tokens: map[int64]int{}})
	}
	for i := range cfg.Clients {
		w.clients = append(w.clients, w.newClient(i))
	}
	return w
}

// askOrder is the order in which all clients ask for a key: different keys
// start at different stores.
func askOrder(key, stores int) []int {
	order := make([]int, stores)
	for i := range order {
		order[i] = (key + i) % stores
	}
	return order
}

// run carries the world to its end.
func (w *World) run() {
	for i, f := range w.plan.Faults {
		w.push(event{at: f.At, kind: faultBegins, index: int32(i)})
		if f.Kind == RollBack {
			w.push(event{at: max(f.At-f.Amount, 0), kind: snapshot, index: int32(i)})
		}
		w.report.Faults[f.Kind]++
	}
	for i := range w.nodes {
		w.push(event{at: tidyEvery, kind: tidy, index: int32(i)})
	}
	w.push(event{at: w.cfg.Duration, kind: phase})
	for _, c := range w.clients {
		c.start()
	}
	for !w.queue.empty() && len(w.report.Violations) < maxViolations {
		e := w.queue.pop()
		if e.at > w.deadline {
			break
		}
		if e.at > w.now {
			w.now, w.same = e.at, 0
		} else if w.same++; w.same > 100_000 {
			w.violate(Progress, -1, "100,000 events happened at one instant")
			break
		}
		w.report.Events++
		w.happen(&e)
		if w.ended && !w.cfg.Open && w.settled() {
			break
		}
	}
	w.finish()
}

// tidyEvery is how often a store drops what is idle.
const tidyEvery = 10 * time.Second

func (w *World) happen(e *event) {
	switch e.kind {
	case arrive:
		w.arrives(e.index)
	case reply:
		w.replies(e)
	case wake:
		e.d.woken(e)
	case call:
		e.c.called(e)
	case faultBegins:
		w.beginFault(int(e.index))
	case faultEnds:
		w.endFault(int(e.index))
	case snapshot:
		w.remember(int(e.index))
	case tidy:
		n := &w.nodes[e.index]
		if !n.down {
			n.store.Sweep(n.time(w.now))
		}
		if w.now+tidyEvery < w.cfg.Duration {
			w.push(event{at: w.now + tidyEvery, kind: tidy, index: e.index})
		}
	case phase:
		w.calmDown()
	case hook:
		e.fn()
	}
}

// push adds an event. Those of one instant come in the order that the choices
// make, and calm ones in the order in which they were added.
func (w *World) push(e event) {
	w.made++
	e.at = max(e.at, w.now)
	w.queue.push(&e, w.choices.Choose(OfTie, 1<<16)<<32|uint64(w.made))
}

// Now returns true time since the start, which nobody in the world knows.
func (w *World) Now() time.Duration { return w.now }

// chance is true in perMillion of a million cases, and never in a calm world.
func (w *World) chance(about Topic, perMillion uint64) bool {
	return perMillion > 0 && w.choices.Choose(about, million) >= million-perMillion
}

// upTo draws a time from nothing to d.
func (w *World) upTo(about Topic, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.choices.Choose(about, uint64(d)))
}

// latency is how long a message takes: mostly near the least, with a long tail.
func (w *World) latency() time.Duration {
	n := &w.noise
	d := n.Base
	if n.Spread > 0 {
		u := w.choices.Choose(OfNetwork, 1<<20)
		d += time.Duration(uint64(n.Spread) * (u * u >> 20 * u >> 20) >> 20)
	}
	if w.chance(OfNetwork, n.Late) {
		d += w.upTo(OfNetwork, n.LateBy)
	}
	return d
}

func (w *World) pair(client, store int) int { return client*w.cfg.Stores + store }

// Client returns a client by number.
func (w *World) Client(i int) *Client { return w.clients[i] }

// Report returns what was counted so far.
func (w *World) Report() *Report { return w.report }

func (w *World) violate(c Checker, key int, format string, args ...any) {
	v := Violation{Checker: c, At: w.now, Key: key, Text: fmt.Sprintf(format, args...)}
	w.report.Violations = append(w.report.Violations, v)
	w.emit(Event{What: Breaks, Client: -1, Store: -1, Key: key, Violation: len(w.report.Violations) - 1})
}

// maxViolations is enough to see what is wrong.
const maxViolations = 10

// affected calls f for each client that a fault befalls.
func (w *World) affected(f *Fault, do func(client int)) {
	if f.Clients == nil {
		for i := range w.clients {
			do(i)
		}
		return
	}
	for _, i := range f.Clients {
		do(i)
	}
}

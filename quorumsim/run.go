package quorumsim

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// Run runs a job in a world to its end, the same way for the same
// configuration and seed. When Duration is over the faults end, the jobs too,
// and what they hold is given back. The world then shows that all is well
// again: each of the first 16 clients takes a key and gives it back, twice, and
// every store votes; what does not come to rest in time is a violation.
//
// It returns an error if the configuration makes no sense, or what the job asks
// for. A panic of the job goes through.
func Run(cfg Config, seed uint64) (*Report, error) {
	cfg = cfg.filled()
	if (cfg.Job == nil) == (cfg.Script == "") {
		return nil, fmt.Errorf("quorumsim: a run needs a Job or a Script, and not both")
	}
	if cfg.Script != "" {
		job, err := parse(cfg)
		if err != nil {
			return nil, fmt.Errorf("quorumsim: script %w", err)
		}
		cfg.Job = job
	}
	world, err := cfg.world()
	if err != nil {
		return nil, fmt.Errorf("quorumsim: %w", err)
	}
	r := &run{cfg: cfg, report: &Report{Seed: seed}, jobs: make([]*Job, cfg.Clients), fences: map[string]int64{}}
	world.Program = r.start
	r.world = sim.NewWorld(world, sim.Seeded(seed))
	r.world.Watch(r.saw)
	defer r.stop()
	r.done(r.world.Run())
	if r.wrong != nil {
		return nil, r.wrong
	}
	return r.report, nil
}

// run is a run under way.
type run struct {
	cfg     Config
	world   *sim.World
	report  *Report
	jobs    []*Job // by client
	running *Job
	keys    []string
	fences  map[string]int64 // by resource, the highest token that it saw
	calm    bool             // the jobs are over
	wrong   error            // what a job asked for makes no sense
}

// stop unwinds every job that still waits.
func (r *run) stop() {
	for _, j := range r.jobs {
		if j != nil {
			j.end()
		}
	}
}

// key returns the number of a key by name.
func (r *run) key(c *sim.Client, name string) int {
	i := c.Key(name)
	if i == len(r.keys) {
		r.keys = append(r.keys, name)
	}
	return i
}

func (r *run) keyName(i int) string {
	if i < 0 || i >= len(r.keys) {
		return ""
	}
	return r.keys[i]
}

// write arrives at a resource.
func (r *run) write(e Event) bool {
	e.What = Takes
	if e.Token < r.fences[e.Resource] && !slices.Contains(r.cfg.NoFence, e.Resource) {
		e.What = Refuses
	}
	r.fences[e.Resource] = max(r.fences[e.Resource], e.Token)
	r.add(e)
	return e.What == Takes
}

// add puts an event into the history and counts it.
func (r *run) add(e Event) {
	e.At = r.world.Now()
	r.report.History = append(r.report.History, e)
	if !r.calm {
		r.report.count(e.What)
	}
}

// heard is what an event of a lease in the world is in a history.
var heard = map[sim.What]What{
	sim.Asks: Asks, sim.Fails: Fails, sim.Acquires: Acquires, sim.Renews: Renews, sim.Reckons: Reckons,
	sim.Misses: Misses, sim.Loses: Loses, sim.GivesBack: Releases, sim.IsFree: Settles,
}

// saw takes what happens in the world.
func (r *run) saw(s sim.Event) {
	e := Event{Client: s.Client, Key: r.keyName(s.Key), Lease: s.Lease, Token: s.Token, Until: s.Until, Shared: s.Mode == core.Shared}
	switch s.What {
	case sim.FaultOn:
		r.fault(Begins, s.Fault)
	case sim.FaultOff:
		r.fault(Ends, s.Fault)
	case sim.Calms:
		r.report.Messages = r.world.Report().Messages
		r.add(Event{What: Calms, Client: -1})
		r.calm = true
	case sim.Fails:
		e.Text = failure(s.Failure).Error()[len("quorumsim: "):]
	case sim.Loses:
		e.Text = sim.ReasonName(s.Reason)
	}
	if what, ok := heard[s.What]; ok {
		e.What = what
		r.add(e)
	}
}

func (r *run) fault(what What, i int) {
	f := r.world.Report().Plan.Faults[i]
	r.add(Event{What: what, Client: -1, Text: f.String()})
	if what != Begins || f.Kind != sim.Kill {
		return
	}
	for c := range r.cfg.Clients {
		if f.Clients == nil || slices.Contains(f.Clients, c) {
			r.add(Event{What: Dies, Client: c})
		}
	}
}

// done completes the report.
func (r *run) done(world *sim.Report) {
	r.report.Digest, r.report.Elapsed = world.Hash, world.Elapsed.Round(time.Millisecond)
	for _, f := range world.Plan.Faults {
		r.report.Faults = append(r.report.Faults, f.String())
	}
	for _, v := range world.Violations {
		r.report.Violations = append(r.report.Violations, Violation{Check: v.Checker.String(), At: v.At, Key: r.keyName(v.Key), Text: v.Text})
	}
	for _, v := range Overlap(r.report.History) {
		if ofWrites(v) {
			r.report.Violations = append(r.report.Violations, v)
		}
	}
}

// ofWrites reports whether the world does not judge this by itself.
func ofWrites(v Violation) bool { return v.Check == "stale" || v.Check == "forged" }

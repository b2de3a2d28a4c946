package scenario

import (
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// Config returns the world as the simulator takes it.
func (f *File) Config(trace bool) sim.Config {
	c := f.config
	c.Trace = trace
	return c
}

// Run runs a world of this file, as it is or with fewer faults, from a seed.
func (f *File) Run(seed uint64, c sim.Config) *sim.Report {
	r := f.run(c, sim.Seeded(seed))
	r.Seed = seed
	return r
}

// Show runs the world once, as the file says, with its trace. The run ends with
// the file's duration: nothing has to come to rest after it.
func (f *File) Show() *sim.Report {
	c := f.Config(true)
	c.Open = true
	if f.Seed != nil {
		return f.run(c, sim.Seeded(*f.Seed))
	}
	return f.run(c, sim.Calm())
}

func (f *File) run(c sim.Config, choices sim.Choices) *sim.Report {
	if f.steps != nil {
		c.Program = f.program() // what a run remembers is its own
	}
	return sim.Run(c, choices)
}

// player is one process that carries out its part of the script.
type player struct {
	c     *sim.Client
	born  clock.Instant
	steps []step
	held  map[int]*sim.Lease
}

// program plays the script in one run.
func (f *File) program() func(*sim.Client) {
	born := map[int]clock.Instant{} // when the run began, by each client's clock
	return func(c *sim.Client) {
		if _, ok := born[c.ID()]; !ok {
			born[c.ID()] = c.Now()
		}
		p := &player{c: c, born: born[c.ID()], held: map[int]*sim.Lease{}}
		for _, s := range f.steps {
			if s.client == c.ID() && s.at >= p.age() {
				p.steps = append(p.steps, s)
			}
		}
		p.next()
	}
}

func (p *player) age() time.Duration { return p.c.Now().Sub(p.born) }

// next waits for the next event of the script.
func (p *player) next() {
	if len(p.steps) == 0 || p.c.Stopping() {
		return
	}
	s := p.steps[0]
	p.steps = p.steps[1:]
	p.c.After(s.at-p.age(), func() {
		if !p.c.Stopping() {
			p.do(&s)
		}
	})
}

func (p *player) do(s *step) {
	l := p.held[s.key()]
	switch {
	case s.verb == "acquire":
		p.acquire(s)
		return
	case l == nil:
	case s.verb == "write":
		l.Write(s.anyway)
	case s.verb == "extend":
		l.Extend(1, s.ttl)
	case s.verb == "cancel":
		l.Cancel()
	case s.verb == "release":
		l.Release()
	}
	p.next()
}

// acquire goes on with the script once it is held, or failed, or if the next
// event is to cancel it.
func (p *player) acquire(s *step) {
	goesOn := len(p.steps) > 0 && p.steps[0].verb == "cancel"
	p.held[s.key()] = p.c.Acquire(s.ask, func(_ *sim.Lease, n core.Notice) {
		if !goesOn && (n.Kind == core.NoticeAcquired || n.Kind == core.NoticeFailed) {
			goesOn = true
			p.next()
		}
	})
	if goesOn {
		p.next()
	}
}

package scenario

import (
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// Run runs the world: from a seed, or calmly without one.
func (f *File) Run(seed *uint64, trace bool) *sim.Report {
	return f.run(seed, trace, false)
}

// Show runs the world once, as the file says, with its trace. The run ends with
// the file's duration: nothing has to come to rest after it.
func (f *File) Show() *sim.Report { return f.run(f.Seed, true, true) }

func (f *File) run(seed *uint64, trace, open bool) *sim.Report {
	c := f.config
	c.Trace, c.Open = trace, open
	choices := sim.Calm()
	if seed != nil {
		choices = sim.Seeded(*seed)
	}
	if f.steps != nil {
		c.Program = f.program()
	}
	r := sim.Run(c, choices)
	if seed != nil {
		r.Seed = *seed
	}
	return r
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

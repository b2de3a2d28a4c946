package main

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// The runs of quorum sim size: so long, with so many clients that have a lock
// each, which they hold for so long and want again.
const (
	sizeSpan    = 10 * time.Minute
	sizeClients = 8
	sizeHold    = 20 * time.Second
	sizeWait    = 30 * time.Second
)

// load is how much goes wrong.
type load struct {
	noise  sim.Noise
	stores time.Duration // between two faults of stores; 0 is never
	pauses time.Duration // between two pauses of clients
}

func loadOf(name string) (load, error) {
	noise := sim.Noise{Base: 500 * time.Microsecond, Spread: 5 * time.Millisecond}
	bad := noise
	bad.Loss, bad.Late, bad.LateBy = 500, 2_000, 2*time.Second
	switch name {
	case "calm":
		return load{noise: noise}, nil
	case "typical":
		return load{noise: bad, stores: 2 * time.Minute, pauses: time.Minute}, nil
	case "hostile":
		bad.Loss, bad.Late = 20_000, 20_000
		return load{noise: bad, stores: 10 * time.Second, pauses: 10 * time.Second}, nil
	}
	return load{}, fmt.Errorf("%q is none of calm, typical, hostile", name)
}

// plan draws what goes wrong. It depends on the seed and the number of stores
// alone, so that rows differ by what they choose.
func (l load) plan(seed uint64, stores int, clients []int) sim.Plan {
	c := sim.Seeded(seed)
	upTo := func(d time.Duration) time.Duration { return time.Duration(c.Choose(sim.OfPlan, uint64(d))) }
	p := sim.Plan{Noise: l.noise}
	if l.stores > 0 {
		kinds := []sim.FaultKind{sim.Crash, sim.Restart, sim.Partition, sim.Slow, sim.Hang, sim.Forget}
		for at := upTo(l.stores); at < sizeSpan; at += l.stores/2 + upTo(l.stores) {
			f := sim.Fault{At: at, Kind: kinds[c.Choose(sim.OfPlan, uint64(len(kinds)))], For: time.Second + upTo(15*time.Second), Amount: upTo(time.Second)}
			f.Stores = f.Stores.With(int(c.Choose(sim.OfPlan, uint64(stores))))
			p.Faults = append(p.Faults, f)
		}
	}
	if l.pauses > 0 {
		for at := upTo(l.pauses); at < sizeSpan; at += l.pauses/2 + upTo(l.pauses) {
			who := clients[c.Choose(sim.OfPlan, uint64(len(clients)))]
			p.Faults = append(p.Faults, sim.Fault{Kind: sim.Pause, At: at, For: upTo(8 * time.Second), Clients: []int{who}})
		}
	}
	return p
}

func (row choice) config() sim.Config {
	order, _ := orderOf(row.order)
	rule, _ := ruleOf(row.strategy, row.stores)
	return sim.Config{
		Stores: row.stores, Rule: rule, Order: order, TTL: row.ttl, MaxTTL: max(row.ttl, time.Minute),
		Duration: sizeSpan, Rates: true, Open: true,
	}
}

// measure runs a row.
func (s *sizing) measure(row choice) (m measured) {
	l, _ := loadOf(s.load)
	everybody := make([]int, sizeClients)
	for i := range everybody {
		everybody[i] = i
	}
	for i := range s.seeds {
		seed := s.first + uint64(i)
		cfg := row.config()
		cfg.Clients, cfg.Keys, cfg.Plan, cfg.Program = sizeClients, sizeClients, l.plan(seed, row.stores, everybody), holdOwn(cfg.Order)
		m.runAlone(cfg, seed)

		cfg = row.config()
		cfg.Clients, cfg.Keys, cfg.Plan = 2, 1, l.plan(seed, row.stores, []int{1})
		takeOvers(cfg, seed, &m.takeOver)
	}
	return m
}

// runAlone runs clients that do not contend, and adds up how long they held.
func (m *measured) runAlone(cfg sim.Config, seed uint64) {
	w := sim.NewWorld(cfg, sim.Seeded(seed))
	since := map[int]time.Duration{}
	w.Watch(func(e sim.Event) {
		switch e.What {
		case sim.Acquires:
			since[e.Lease] = e.At
		case sim.GivesBack, sim.Loses:
			if at, ok := since[e.Lease]; ok {
				m.held += e.At - at
				delete(since, e.Lease)
			}
		}
	})
	m.alone.Add(w.Run())
}

// holdOwn holds a lock that no other client wants, again and again.
func holdOwn(order core.Order) func(*sim.Client) {
	return func(c *sim.Client) { holdAgain(c, order) }
}

func holdAgain(c *sim.Client, order core.Order) {
	var ask func()
	again := func() { c.After(time.Duration(c.Choose(uint64(5*time.Second))), ask) }
	ask = func() {
		lost := false
		c.Acquire(sim.Request{Key: c.ID(), Wait: sizeWait, Order: order}, func(l *sim.Lease, n core.Notice) {
			switch n.Kind {
			case core.NoticeAcquired:
				c.After(sizeHold, func() {
					if !lost {
						l.Release()
					}
				})
			case core.NoticeLost:
				lost = true
				l.Release()
			case core.NoticeFailed, core.NoticeReleased:
				again()
			}
		})
	}
	again()
}

// takeOvers measures how long a lock whose holder died stays without one.
// Client 0 dies whenever it has held the lock for a while, which is when
// client 1 begins to wait.
func takeOvers(cfg sim.Config, seed uint64, out *sim.Spread) {
	const life = 40 * time.Second
	for at := life; at+life < sizeSpan; at += life {
		dead := time.Duration(sim.Seeded(seed+uint64(at)).Choose(sim.OfPlan, uint64(10*time.Second)))
		cfg.Plan.Faults = append(cfg.Plan.Faults, sim.Fault{Kind: sim.Kill, At: at - life/2 + dead, For: life/2 - dead, Clients: []int{0}})
	}
	cfg.Program = func(c *sim.Client) { heir(c, cfg.Order) }
	w := sim.NewWorld(cfg, sim.Seeded(seed))
	holds, died := false, time.Duration(-1)
	w.Watch(func(e sim.Event) {
		switch {
		case e.What == sim.Acquires && e.Client == 0:
			holds = true
		case e.What == sim.Loses && e.Client == 0:
			holds = false
		case e.What == sim.FaultOn && cfg.Plan.Faults[e.Fault].Kind == sim.Kill && holds:
			holds, died = false, e.At
		case e.What == sim.Acquires && died >= 0:
			out.Count(e.At - died)
			died = -1
		}
	})
	w.Run()
}

// heir is client 0, which takes the lock and keeps it until it dies, or client
// 1, which waits for that.
func heir(c *sim.Client, order core.Order) {
	if c.ID() == 0 {
		c.Acquire(sim.Request{Wait: -1, Order: order}, nil)
		return
	}
	var ask func()
	ask = func() {
		c.Acquire(sim.Request{Wait: -1, Order: order}, func(l *sim.Lease, n core.Notice) {
			switch n.Kind {
			case core.NoticeAcquired, core.NoticeLost:
				l.Release()
			case core.NoticeFailed, core.NoticeReleased:
				c.After(5*time.Second, ask)
			}
		})
	}
	c.After(5*time.Second, ask)
}

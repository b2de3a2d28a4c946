package sim

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Random draws a world: how many stores and clients, how long leases last, what
// clients do, how hostile the network is and which kinds of fault there are.
// What base sets to anything but zero stays, and Order where KeepOrder says so.
func Random(base Config, c Choices) Config {
	pick := func(n int) int { return int(c.Choose(OfConfig, uint64(n))) }
	often := func(most int) uint64 { // off in half of all worlds
		if pick(2) == 0 {
			return 0
		}
		return uint64(pick(most * 10_000))
	}
	if base.Stores == 0 && base.Rule == nil {
		base.Stores = [...]int{3, 5, 3, 5, 4, 7, 1, 2}[pick(8)]
	}
	if base.Clients == 0 {
		base.Clients = 2 + pick(5)
	}
	if base.Keys == 0 {
		base.Keys = 1 + pick(2)
	}
	if base.TTL == 0 {
		base.TTL = [...]time.Duration{2 * time.Second, time.Second, 5 * time.Second, 10 * time.Second}[pick(4)]
		base.MaxTTL = base.TTL * time.Duration(1+pick(4))
	}
	if drawn := core.Order(pick(3)); !base.KeepOrder {
		base.Order = drawn
	}
	if base.Duration == 0 {
		base.Duration = 4*base.TTL + time.Duration(pick(8))*time.Second
	}
	if base.Work == (Work{}) {
		base.Work = Work{
			Think: time.Duration(1+pick(1000)) * time.Millisecond, Hold: base.TTL * time.Duration(1+pick(12)) / 4,
			Shared: often(70), Try: often(40), Leak: often(15), Cancel: often(30), Extend: often(30), Close: often(8),
			Mixed: pick(3) == 2, AnyWay: often(50), Brief: often(50), Ignores: often(50),
			Promote: often(60), Demote: often(40),
		}
	}
	if base.KeepOrder {
		base.Work.AnyWay = 0
	}
	if base.Skew == 0 {
		base.Skew = time.Duration(pick(500)) * time.Millisecond
	}
	base.Unsteady = base.Unsteady || pick(6) == 5
	base.Swarm, base.Rates = true, true
	return base
}

// drawPlan draws what goes wrong: first how much and of which kinds, so that
// some worlds know only one kind of trouble and some nearly all.
func drawPlan(cfg *Config, c Choices) Plan {
	d := drawer{cfg: cfg, c: c}
	p := Plan{Noise: d.noise()}
	if cfg.Plan.Noise != (Noise{}) {
		p.Noise = cfg.Plan.Noise
	}
	var kinds []FaultKind
	hostile := d.pick(4)
	for k := range faultKinds {
		if d.allowed(k) && d.pick(4) < hostile {
			kinds = append(kinds, k)
		}
	}
	if len(cfg.Only) > 0 {
		kinds, hostile = cfg.Only, 3
	}
	if len(kinds) == 0 {
		return p
	}
	most := 1 + hostile*int(cfg.Duration/(4*time.Second)+1)
	for range 1 + d.pick(most) {
		f := d.fault(kinds[d.pick(len(kinds))])
		if f.Kind < Restart || f.Kind > RollBack || d.mayForget(p.Faults, f) {
			p.Faults = append(p.Faults, f)
		}
	}
	return p
}

type drawer struct {
	cfg *Config
	c   Choices
}

func (d *drawer) pick(n int) int { return int(d.c.Choose(OfPlan, uint64(n))) }

func (d *drawer) time(most time.Duration) time.Duration {
	return time.Duration(d.pick(int(most/time.Millisecond)+1)) * time.Millisecond
}

func (d *drawer) noise() Noise {
	n := Noise{Base: time.Duration(1+d.pick(2000)) * time.Microsecond, Spread: d.time(100 * time.Millisecond)}
	if d.pick(2) == 1 {
		n.Loss = uint64(d.pick(100_000))
	}
	if d.pick(3) == 1 {
		n.Double = uint64(d.pick(100_000))
	}
	if d.pick(2) == 1 {
		n.Late, n.LateBy = uint64(d.pick(100_000)), d.time(2*d.cfg.MaxTTL)
	}
	if d.pick(3) == 1 {
		n.Pauses = uint64(d.pick(30_000))
	}
	return n
}

// allowed leaves out what breaks an assumption of the claims.
func (d *drawer) allowed(k FaultKind) bool {
	switch k {
	case Drop, Evict, ClockLeap, Split:
		return false
	case Doze, ClockRate, Drift:
		return d.cfg.Unsteady
	}
	return true
}

func (d *drawer) fault(k FaultKind) Fault {
	cfg := d.cfg
	f := Fault{Kind: k, At: d.time(cfg.Duration), For: d.time(2 * cfg.TTL)}
	if !k.ofClients() {
		f.Stores = core.Set(0).With(d.pick(cfg.Stores))
		for i := range cfg.Stores {
			if d.pick(3) == 2 {
				f.Stores = f.Stores.With(i)
			}
		}
	}
	if k.ofClients() || k == Partition || k == PartitionAsk || k == PartitionReply || k == Clog || k == Lossy || k == Echo {
		if d.pick(2) == 1 || k.ofClients() {
			f.Clients = []int{d.pick(cfg.Clients)}
		}
	}
	switch k {
	case Slow:
		f.Amount = d.time(2 * time.Second)
	case Echo:
		f.Amount = d.time(cfg.MaxTTL)
	case RollBack:
		f.Amount = d.time(time.Second)
	case ClockStep:
		// A clock that steps ahead ends votes early, which breaks an assumption.
		f.Amount = -d.time(30 * time.Minute)
		if cfg.Unsteady {
			f.Amount = d.time(60*time.Minute) - 30*time.Minute
		}
		f.For = 0
	case ClockRate, Drift:
		f.Rate = int64(d.pick(400_000)) - 200_000
	case Lossy:
		f.Rate = int64(d.pick(400_000))
	}
	if k >= Crash && k <= RollBack {
		f.For = d.time(cfg.TTL)
	}
	if k == Twins {
		f.Stores = f.Stores.With(d.pick(cfg.Stores))
	}
	return f
}

// mayForget keeps to the assumption on forgetting: whoever forgets can leave
// quarantine by a quorum of stores that have not.
func (d *drawer) mayForget(before []Fault, f Fault) bool {
	const restPause = 3 * time.Second // a refill looks again at least that often
	span := f.For + 2*d.cfg.MaxTTL + restPause
	out := f.Stores
	for _, o := range before {
		if o.Kind >= Restart && o.Kind <= RollBack && o.At < f.At+span && f.At < o.At+span {
			out |= o.Stores
		}
	}
	return d.cfg.canLeave(out)
}

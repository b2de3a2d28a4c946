package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorum/internal/core"
)

// drawn are choices that are calm but for a short list that rapid draws: which
// choice, counted from the start of the run, comes out how. What clients do is
// a seed's, so that there is something to go wrong.
type drawn struct {
	work  Choices
	count uint64
	bumps map[uint64]uint64
}

func (d *drawn) Choose(about Topic, n uint64) uint64 {
	if about == OfWork || about == OfClock {
		return d.work.Choose(about, n)
	}
	d.count++
	return min(d.bumps[d.count], n-1)
}

func drawChoices(t *rapid.T) Choices {
	d := &drawn{work: Seeded(rapid.Uint64Range(0, 1000).Draw(t, "work"))}
	d.bumps = rapid.MapOfN(rapid.Uint64Range(1, 3000), rapid.Uint64Range(1, million), 0, 6).Draw(t, "bumps")
	return d
}

// drawFault draws one named fault. rapid shrinks towards the first kind, the
// beginning of the run, no time and one store.
func drawFault(t *rapid.T, cfg *Config, kinds []FaultKind) Fault {
	ms := func(name string, most int) time.Duration {
		return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Millisecond
	}
	f := Fault{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), At: ms("at", 6000), For: ms("for", 3000)}
	if !f.Kind.ofClients() {
		f.Stores = core.Set(rapid.IntRange(1, 1<<cfg.Stores-1).Draw(t, "stores"))
	}
	if f.Kind.ofClients() || f.Kind <= Clog || f.Kind == Lossy || f.Kind == Echo {
		f.Clients = []int{rapid.IntRange(0, cfg.Clients-1).Draw(t, "client")}
	}
	switch f.Kind {
	case Slow, Echo:
		f.Amount = ms("by", 1500)
	case RollBack:
		f.Amount = ms("back", 1000)
	case ClockStep:
		f.Amount = -ms("back", 1_200_000)
		if cfg.Unsteady {
			f.Amount += 10 * time.Minute
		}
	case Lossy:
		f.Rate = int64(rapid.IntRange(0, 500_000).Draw(t, "rate"))
	}
	return f
}

// holds is the property: whatever a few named faults do to a calm world, no
// checker sees anything.
func holds(cfg Config, kinds []FaultKind) func(*rapid.T) {
	return func(t *rapid.T) {
		cfg := cfg.filled()
		cfg.Duration = 8 * time.Second
		cfg.Order = core.Order(rapid.IntRange(0, 2).Draw(t, "order"))
		d := drawer{cfg: &cfg}
		one := rapid.Custom(func(t *rapid.T) Fault { return drawFault(t, &cfg, kinds) })
		for _, f := range rapid.SliceOfN(one, 0, 4).Draw(t, "faults") {
			if f.Kind < Restart || f.Kind > RollBack || d.mayForget(cfg.Plan.Faults, f) {
				cfg.Plan.Faults = append(cfg.Plan.Faults, f)
			}
		}
		if r := Run(cfg, drawChoices(t)); len(r.Violations) > 0 {
			t.Fatalf("%v\n%v", r.Violations[0], r.Plan)
		}
	}
}

func calmWorld() Config {
	return Config{
		Stores: 3, Clients: 3, Keys: 1, TTL: time.Second, MaxTTL: 2 * time.Second,
		Work: Work{Think: 100 * time.Millisecond, Hold: 1500 * time.Millisecond, Shared: 200_000, Brief: 300_000},
		Plan: Plan{Noise: Noise{Base: time.Millisecond, Spread: 100 * time.Millisecond}},
	}
}

var properties = map[string]func(*rapid.T){
	"network": holds(calmWorld(), []FaultKind{Partition, PartitionAsk, PartitionReply, Clog, Lossy, Echo, Slow, Hang}),
	"stores":  holds(calmWorld(), []FaultKind{Crash, Restart, Forget, Flush, RollBack, Full, Deny, Hang}),
	"clients": holds(calmWorld(), []FaultKind{Pause, Kill, Clog, Echo, Slow, PartitionReply}),
	"clocks": holds(func() Config { c := calmWorld(); c.Unsteady = true; return c }(),
		[]FaultKind{ClockStep, ClockFreeze, Pause, Clog, Forget, Restart, RollBack}),
}

func TestR90PropertyNetwork(t *testing.T) { rapid.Check(t, properties["network"]) }
func TestR90PropertyStores(t *testing.T)  { rapid.Check(t, properties["stores"]) }
func TestR90PropertyClients(t *testing.T) { rapid.Check(t, properties["clients"]) }
func TestR90PropertyClocks(t *testing.T)  { rapid.Check(t, properties["clocks"]) }

func FuzzNetwork(f *testing.F) { f.Fuzz(rapid.MakeFuzz(properties["network"])) }
func FuzzStores(f *testing.F)  { f.Fuzz(rapid.MakeFuzz(properties["stores"])) }
func FuzzClients(f *testing.F) { f.Fuzz(rapid.MakeFuzz(properties["clients"])) }
func FuzzClocks(f *testing.F)  { f.Fuzz(rapid.MakeFuzz(properties["clocks"])) }

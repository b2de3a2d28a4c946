package scenario

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/sim"
)

// fault is one thing that goes wrong.
type fault struct {
	Kind    string   `yaml:"kind"`
	At      duration `yaml:"at"`
	For     duration `yaml:"for"`
	Stores  []string `yaml:"stores"`
	Clients []int    `yaml:"clients"` // none is all
	By      string   `yaml:"by"`      // a duration or a percentage
}

// kindName is what a file calls a kind of fault.
func kindName(k sim.FaultKind) string {
	return strings.ReplaceAll(strings.ReplaceAll(k.String(), " of ", "-"), " ", "-")
}

// Kinds returns what a file calls the kinds of faults.
func Kinds() []string {
	var names []string
	for k := range sim.FaultKind(sim.FaultKinds) {
		names = append(names, kindName(k))
	}
	return names
}

func (f *File) faults(c *sim.Config) error {
	if f.Swarm && len(f.Faults) > 0 {
		return errors.New("with swarm, the seed draws the faults: leave one of them out")
	}
	for i := range f.Faults {
		out, err := f.Faults[i].read(c)
		if err != nil {
			return fmt.Errorf("number %d: %w", i+1, err)
		}
		c.Plan.Faults = append(c.Plan.Faults, out)
	}
	return nil
}

func (f *fault) read(c *sim.Config) (sim.Fault, error) {
	out := sim.Fault{At: time.Duration(f.At), For: time.Duration(f.For), Clients: f.Clients}
	for k := range sim.FaultKind(sim.FaultKinds) {
		if kindName(k) == f.Kind {
			out.Kind = k
		}
	}
	if kindName(out.Kind) != f.Kind {
		return out, fmt.Errorf("kind: %q is none of %s", f.Kind, strings.Join(Kinds(), ", "))
	}
	if out.At > c.Duration {
		return out, fmt.Errorf("at: %v is after the end, %v", out.At, c.Duration)
	}
	for _, name := range f.Stores {
		i := -1
		if len(name) == 1 {
			i = int(name[0]) - 'a'
		}
		if i < 0 || i >= c.Stores {
			return out, fmt.Errorf("stores: %q is none of a to %s", name, sim.StoreName(c.Stores-1))
		}
		out.Stores = out.Stores.With(i)
	}
	for _, i := range f.Clients {
		if i < 0 || i >= c.Clients {
			return out, fmt.Errorf("clients: %d is none of 0 to %d", i, c.Clients-1)
		}
	}
	switch ofClients := out.Kind == sim.Pause || out.Kind == sim.Kill || out.Kind == sim.Drift || out.Kind == sim.Doze; {
	case ofClients && f.Stores != nil:
		return out, fmt.Errorf("stores: %s befalls clients", f.Kind)
	case !ofClients && f.Stores == nil:
		return out, fmt.Errorf("stores: %s needs some of a to %s", f.Kind, sim.StoreName(c.Stores-1))
	}
	return out, f.amount(&out)
}

// amount reads By, which is a duration for some kinds, a percentage for
// others, and nothing for most.
func (f *fault) amount(out *sim.Fault) (err error) {
	switch out.Kind {
	case sim.Slow, sim.RollBack, sim.ClockStep, sim.ClockLeap, sim.Echo:
		if out.Amount, err = time.ParseDuration(f.By); err != nil || out.Amount < 0 && out.Kind != sim.ClockStep {
			return fmt.Errorf("by: %s needs a duration such as 500ms, not %q", f.Kind, f.By)
		}
	case sim.ClockRate, sim.Drift, sim.Lossy:
		if out.Rate, err = parts(f.By); err != nil || out.Rate < 0 && out.Kind == sim.Lossy {
			return fmt.Errorf("by: %s needs a percentage such as 10%%, not %q", f.Kind, f.By)
		}
	default:
		if f.By != "" {
			return fmt.Errorf("by: %s takes none", f.Kind)
		}
	}
	return nil
}

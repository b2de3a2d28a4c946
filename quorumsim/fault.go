package quorumsim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// FaultKind is one thing that can go wrong. Its text is its name.
type FaultKind string

// The faults of the network, between Clients and Stores.
const (
	Partition      FaultKind = "partition"             // nothing passes
	PartitionAsk   FaultKind = "partition of requests" // requests are lost
	PartitionReply FaultKind = "partition of answers"  // requests are carried out, their answers are lost
	Clog           FaultKind = "clog"                  // messages wait until it is over
	Lossy          FaultKind = "lossy"                 // messages are lost, and requests doubled, PPM in a million each
	Echo           FaultKind = "echo"                  // requests are delivered again By later
)

// The faults of Stores.
const (
	Slow        FaultKind = "slow"         // answers come By later
	Hang        FaultKind = "hang"         // nothing happens; what came is carried out when it is over
	Full        FaultKind = "full"         // every request fails with an error
	Deny        FaultKind = "deny"         // no vote is given or kept
	Crash       FaultKind = "crash"        // down; back with all it knew, and sure of that
	Restart     FaultKind = "restart"      // down; back with all it knew, which it cannot be sure of
	Forget      FaultKind = "forget"       // down; back empty
	Flush       FaultKind = "flush"        // all it knew is lost at From; it goes on in the same life
	RollBack    FaultKind = "roll back"    // down; back as it was By before
	ClockStep   FaultKind = "clock step"   // the clock jumps by By at From
	ClockRate   FaultKind = "clock rate"   // the clock runs PPM millionths fast
	ClockFreeze FaultKind = "clock freeze" // the clock stands still
	Drop        FaultKind = "drop"         // somebody deletes the votes of the first key by hand, at From
	Evict       FaultKind = "evict"        // all that is kept of the first key is deleted, its counter too, at From
	ClockLeap   FaultKind = "clock leap"   // the clock jumps by By and back at From, and no call sees it
	Twins       FaultKind = "twins"        // the addresses of Stores lead to the server of the first of them
	Split       FaultKind = "split"        // each is two servers that think they are it, and Clients reach the second
)

// The faults of Clients.
const (
	Pause FaultKind = "pause" // the process stands still, its clock goes on
	Kill  FaultKind = "kill"  // the process dies, and begins again when it is over
	Drift FaultKind = "drift" // its clock runs PPM millionths fast
	Doze  FaultKind = "doze"  // its machine sleeps, and its clock with it
)

// Fault is one thing that goes wrong for some time. ClockRate, Drift, Doze,
// Drop, Evict, ClockLeap, Split and a ClockStep ahead break assumptions that the
// lock rests on, if they are large enough: see docs/safety.md. So do Forget, Flush and RollBack of so
// many stores that no quorum of the others is left.
type Fault struct {
	Kind    FaultKind
	From    time.Duration // since the start of the run
	To      time.Duration // 0 is until the end of it
	Stores  []int         // from 0; nil is all. Not of faults of clients
	Clients []int         // from 0; nil is all. Not of faults of stores
	By      time.Duration // of Slow, Echo, RollBack, ClockLeap, ClockStep (which may be negative)
	PPM     int64         // of Lossy, ClockRate, Drift: millionths; fast above zero, slow below
}

// ofClients and ofPaths say what a kind befalls; what is neither befalls stores.
func (k FaultKind) ofClients() bool { return k == Pause || k == Kill || k == Drift || k == Doze }

func (k FaultKind) ofPaths() bool {
	return k == Partition || k == PartitionAsk || k == PartitionReply || k == Clog || k == Lossy || k == Echo || k == Split
}

// simulated returns the fault as the world takes it.
func (f Fault) simulated(stores int, duration time.Duration) (sim.Fault, error) {
	kind, err := f.Kind.number()
	if err != nil {
		return sim.Fault{}, err
	}
	to := f.To
	if to == 0 {
		to = duration
	}
	switch {
	case f.From < 0 || f.From > duration:
		return sim.Fault{}, fmt.Errorf("%s from %v: a run of %v has no such time", f.Kind, f.From, duration)
	case to < f.From:
		return sim.Fault{}, fmt.Errorf("%s from %v to %v ends before it begins", f.Kind, f.From, to)
	case f.Stores != nil && f.Kind.ofClients():
		return sim.Fault{}, fmt.Errorf("%s at %v befalls clients, not stores", f.Kind, f.From)
	case f.Clients != nil && !f.Kind.ofClients() && !f.Kind.ofPaths():
		return sim.Fault{}, fmt.Errorf("%s at %v befalls stores, not clients", f.Kind, f.From)
	case f.Kind == Lossy && (f.PPM < 0 || f.PPM > 1_000_000):
		return sim.Fault{}, fmt.Errorf("%s at %v: %d ppm of the messages: 0 to 1,000,000", f.Kind, f.From, f.PPM)
	case f.By < 0 && f.Kind != ClockStep:
		return sim.Fault{}, fmt.Errorf("%s at %v by %v: at least 0", f.Kind, f.From, f.By)
	}
	out := sim.Fault{Kind: kind, At: f.From, For: to - f.From, Clients: f.Clients, Amount: f.By, Rate: f.PPM}
	switch f.Kind {
	case ClockStep, ClockLeap, Drop, Evict, Flush:
		out.For = 0
	}
	if f.Kind.ofClients() {
		return out, nil
	}
	out.Stores = core.Full(stores)
	if f.Stores != nil {
		out.Stores = 0
	}
	for _, s := range f.Stores {
		if s < 0 || s >= stores {
			return sim.Fault{}, fmt.Errorf("%s at %v: store %d of %d: they count from 0", f.Kind, f.From, s, stores)
		}
		out.Stores = out.Stores.With(s)
	}
	return out, nil
}

// number returns the kind as the world counts it.
func (k FaultKind) number() (sim.FaultKind, error) {
	var names []string
	for i := range sim.FaultKind(sim.FaultKinds) {
		if i.String() == string(k) {
			return i, nil
		}
		names = append(names, i.String())
	}
	return 0, fmt.Errorf("fault %q is none of %s", string(k), strings.Join(names, ", "))
}

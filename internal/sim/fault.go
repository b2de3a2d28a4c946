package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// FaultKind is one thing that can go wrong.
type FaultKind uint8

// The faults.
const (
	Partition      FaultKind = iota // Clients and Stores cannot reach each other
	PartitionAsk                    // requests from Clients to Stores are lost; answers come
	PartitionReply                  // requests arrive; answers from Stores to Clients are lost
	Clog                            // messages between Clients and Stores wait until it is over
	Slow                            // Stores answer Amount later
	Hang                            // Stores do nothing, and carry out what came when it is over
	Full                            // Stores fail every request with an error
	Deny                            // Stores refuse whatever takes or keeps a vote
	Crash                           // Stores stop, and start again with all they knew, which they are sure of
	Restart                         // Stores stop, and start again with all they knew, which they cannot be sure of
	Forget                          // Stores stop, and start again empty
	Flush                           // Stores lose all they knew, and go on at once in the same life of the server
	RollBack                        // Stores stop, and start again as they were Amount before
	ClockStep                       // Stores' clocks jump by Amount
	ClockRate                       // Stores' clocks run Rate millionths fast until it is over
	ClockFreeze                     // Stores' clocks stand still until it is over
	Pause                           // Clients' processes stop; their clocks go on
	Kill                            // Clients' processes die, and start again when it is over
	Drift                           // Clients' clocks run Rate millionths fast until it is over
	Doze                            // Clients' machines sleep, and their clocks with them: breaks an assumption
	Lossy                           // messages between Clients and Stores are lost or doubled, Rate in a million each
	Echo                            // requests from Clients to Stores are delivered again Amount later
	Drop                            // somebody deletes the votes of key 0 on Stores by hand: breaks an assumption
	Evict                           // all that Stores keep of key 0 is deleted, its counter too: breaks an assumption
	ClockLeap                       // Stores' clocks jump by Amount and back at once, and no call sees it: breaks an assumption beyond ten minutes
	Twins                           // the addresses of Stores lead to the server of the first of them
	Split                           // Stores are two servers each, and Clients reach the second: breaks an assumption
	faultKinds
)

var faultNames = [faultKinds]string{
	"partition", "partition of requests", "partition of answers", "clog", "slow", "hang", "full", "deny",
	"crash", "restart", "forget", "flush", "roll back", "clock step", "clock rate", "clock freeze",
	"pause", "kill", "drift", "doze", "lossy", "echo", "drop", "evict", "clock leap", "twins", "split",
}

// FaultKinds is how many kinds there are.
const FaultKinds = int(faultKinds)

func (k FaultKind) String() string { return faultNames[k] }

// ofClients reports whether a fault befalls clients and no store.
func (k FaultKind) ofClients() bool { return k == Pause || k == Kill || k == Drift || k == Doze }

// Fault is one thing that goes wrong at one time. Only the fields that its
// kind names count.
type Fault struct {
	Kind    FaultKind
	At      time.Duration // true time since the start of the run
	For     time.Duration // how long; ClockStep, ClockLeap, Drop and Evict are over at once
	Stores  core.Set
	Clients []int // nil is all
	Amount  time.Duration
	Rate    int64 // millionths, fast above zero
}

// String says the fault in a line, stores as letters and clients as numbers.
func (f Fault) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v at %v", f.Kind, f.At)
	if f.For > 0 {
		fmt.Fprintf(&b, " for %v", f.For)
	}
	if !f.Kind.ofClients() {
		b.WriteString(", stores ")
		b.WriteString(letters(f.Stores))
	}
	if f.Clients != nil {
		fmt.Fprintf(&b, ", clients %v", f.Clients)
	}
	if f.Amount != 0 {
		fmt.Fprintf(&b, ", by %v", f.Amount)
	}
	if f.Rate != 0 {
		fmt.Fprintf(&b, ", %d ppm", f.Rate)
	}
	return b.String()
}

// StoreName is how people call store i: a, b, c ...
func StoreName(i int) string { return string(rune('a' + i)) }

func letters(s core.Set) string {
	var b strings.Builder
	for i := range core.MaxMembers {
		if s.Has(i) {
			b.WriteString(StoreName(i))
		}
	}
	return b.String()
}

// Noise is how messages fare all the time while faults last. The zero value is
// a network in which a message takes no time.
type Noise struct {
	Base   time.Duration // of every message, one way
	Spread time.Duration // at most this much more, mostly far less
	Loss   uint64        // messages lost, in a million
	Double uint64        // requests delivered twice, in a million
	Late   uint64        // messages later by up to LateBy, in a million
	LateBy time.Duration
	Pauses uint64 // short stops of a client before what it does next, in a million
}

// calm is the noise once the faults are over.
func (n Noise) calm() Noise { return Noise{Base: n.Base, Spread: min(n.Spread, n.Base)} }

// Plan is everything that goes wrong in a run.
type Plan struct {
	Noise  Noise
	Faults []Fault
}

// String lists the plan, a line each.
func (p Plan) String() string {
	var b strings.Builder
	n := p.Noise
	fmt.Fprintf(&b, "network: %v to %v one way", n.Base, n.Base+n.Spread)
	for _, part := range []struct {
		rate uint64
		what string
	}{{n.Loss, "lost"}, {n.Double, "doubled"}, {n.Late, "late by up to " + n.LateBy.String()}, {n.Pauses, "short pauses"}} {
		if part.rate > 0 {
			fmt.Fprintf(&b, ", %.1f %% %s", float64(part.rate)/1e4, part.what)
		}
	}
	b.WriteByte('\n')
	for _, f := range p.Faults {
		b.WriteString(f.String())
		b.WriteByte('\n')
	}
	return b.String()
}

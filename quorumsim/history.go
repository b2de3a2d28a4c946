package quorumsim

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// What says what an [Event] is. Its text is a verb.
type What string

// The events of a lease. Each fills At, Client, Key and Lease, and what stands
// beside it.
const (
	Asks     What = "asks"     // an acquisition begins: Shared
	Fails    What = "fails"    // it ends without a lease: Text
	Acquires What = "acquires" // the lease is held from now on: Token, Until, Shared
	Renews   What = "renews"   // it is held for longer: Token, Until
	Reckons  What = "reckons"  // the client's clock changed its rate, and the end with it: Token, Until
	Misses   What = "misses"   // a renewal found too few stores
	Loses    What = "loses"    // the client knows that the lease is over: Token, Text
	Releases What = "releases" // the client gives it back, and holds it no more
	Settles  What = "settles"  // every store has answered the release, or failed once
)

// The other events.
const (
	Dies    What = "dies"    // a process, with what it held: Client
	Writes  What = "writes"  // a write leaves: Client, Resource, Token
	Takes   What = "takes"   // the resource took it: Client (whose), Resource, Token
	Refuses What = "refuses" // its fence refused it: Client (whose), Resource, Token
	Logs    What = "logs"    // the job said something: Client, Text
	Begins  What = "begins"  // a fault: Text
	Ends    What = "ends"    // a fault: Text
	Calms   What = "calms"   // Duration is over; what follows is the world's own: see [Run]
)

// Event is one thing that happened.
type Event struct {
	At       time.Duration // true time since the start, which nobody in the world knows
	What     What
	Client   int // from 0
	Key      string
	Lease    int // the number of the acquisition, from 1 in the order of their beginning
	Shared   bool
	Token    int64
	Until    time.Duration // true time at which the client stops believing that it holds; 0 is not known
	Resource string
	Text     string
}

// History is what happened, in order.
type History []Event

// String writes the history, a line an event: with all that tells two runs
// apart.
func (h History) String() string {
	var b strings.Builder
	for _, e := range h {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// String says the event in a line.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%14v ", e.At)
	switch e.What {
	case Begins, Ends:
		fmt.Fprintf(&b, "%s: %s", e.What, e.Text)
		return b.String()
	case Calms:
		return b.String() + "the faults and the jobs are over"
	case Takes, Refuses:
		fmt.Fprintf(&b, "%s %s token %d of client %d", e.Resource, e.What, e.Token, e.Client)
		return b.String()
	case Writes:
		fmt.Fprintf(&b, "client %d writes to %s, token %d", e.Client, e.Resource, e.Token)
		return b.String()
	case Logs, Dies:
		fmt.Fprintf(&b, "client %d %s", e.Client, e.What)
	default:
		fmt.Fprintf(&b, "client %d %s %s", e.Client, e.What, e.Key)
		if e.Shared {
			b.WriteString(" shared")
		}
		fmt.Fprintf(&b, ", lease %d", e.Lease)
	}
	if e.Token != 0 {
		fmt.Fprintf(&b, ", token %d", e.Token)
	}
	switch {
	case e.Until == math.MaxInt64:
		b.WriteString(", without end")
	case e.Until != 0:
		fmt.Fprintf(&b, ", until %v", e.Until)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ": %s", e.Text)
	}
	return b.String()
}

package sim

import (
	"fmt"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Config says what a world is made of. The zero value of a field is its
// default; [Config.Check] names what does not fit together.
type Config struct {
	Stores  int        // 1 to 16; default 5
	Zones   int        // the stores form so many composites of equally many, each with its own majority; 0 is a flat set
	Rule    *core.Rule // over the zones, or over the stores of a flat set; default a majority
	Clients int        // default 4
	Keys    int        // names that the clients lock; default 2
	Order   core.Order // in which stores are asked

	KeepOrder bool // of Random: Order is what is wanted, and the clients keep to it

	TTL          time.Duration // default 10 s
	MaxTTL       time.Duration // default 2 TTL
	RenewEvery   time.Duration // default TTL/3; negative is never
	CallLimit    time.Duration // default min(TTL/(Stores+1), 1 s)
	ReleaseLimit time.Duration // default 5 s
	BackoffMin   time.Duration // default 10 ms
	BackoffMax   time.Duration // default 1 s
	Watches      bool          // the stores tell who waits what happens
	Queues       bool          // and keep queues, in which clients wait
	DriftPPM     int64         // allowance for clocks that run differently; default 10,000 (1 %)
	DriftFixed   time.Duration // default 2 ms
	Doubles      bool          // the clients' libraries may send a request twice; on when the plan doubles

	Duration time.Duration // of the phase with faults; default 20 s
	Plan     Plan          // what goes wrong in it
	Swarm    bool          // the choices draw the plan; the noise of Plan stays, if there is any
	Only     []FaultKind   // of a swarm: these kinds and no others, and many of them
	Rates    bool          // every clock runs at a rate of its own, within the allowance
	Unsteady bool          // the stores' clocks may leave their bound: then only the order of tokens is checked
	Skew     time.Duration // by how much the stores' clocks differ at the start

	Work    Work
	Program func(*Client) // what each client's process does from its start; nil is Work
	Chore   func(*Client) // what it does beside that, from each start, to the end of the second phase
	Busy    func() bool   // whether a chore is still to be done: the run does not end before
	Latest  func() *Set   // the set that clients are to use at present; nil is the one that there is
	// Longest is how long an acquisition may take in this world; 0 is unchecked.
	Longest time.Duration
	// Open leaves the second phase out: nothing has to come to rest. For
	// programs that never give back, and for scenarios.
	Open bool

	Trace  bool      // keep the events, not only their hash
	Bugs   core.Bugs // known mistakes, switched on
	Mutant Mutant
}

// Work is what the clients do when they have no program of their own: lock a
// name, hold it, write under its token, give it back, again. Rates are in a
// million.
type Work struct {
	Think   time.Duration // at most this long between two locks; default 500 ms
	Hold    time.Duration // at most this long held; default 3 TTL
	Wait    time.Duration // at most this long waited for; default 2 TTL
	Write   time.Duration // between two writes; default Hold/4
	Shared  uint64        // readers
	Force   uint64        // of the writers: by force
	Try     uint64        // a single attempt
	Leak    uint64        // never given back, and not renewed
	Cancel  uint64        // given up before Wait is over
	Extend  uint64        // an explicit extension
	Promote uint64        // of the readers: to a writer, half way
	Demote  uint64        // of the writers: to a reader, half way
	Close   uint64        // the whole locker is closed, and another opened
	Mixed   bool          // TTLs between TTL/4 and MaxTTL on one name
	AnyWay  uint64        // in any of the orders
	Brief   uint64        // held for no time at all
	Ignores uint64        // goes on to write after the lease was lost, as a careless program does
}

// filled returns the configuration with defaults for what is zero.
func (c Config) filled() Config {
	orInt := func(p *int, n int) {
		if *p == 0 {
			*p = n
		}
	}
	or := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	if c.Stores == 0 && c.Rule != nil && c.Zones == 0 {
		c.Stores = c.Rule.N()
	}
	orInt(&c.Stores, 5)
	orInt(&c.Clients, 4)
	orInt(&c.Keys, 2)
	if c.Rule == nil && c.Stores > 0 && c.Stores <= core.MaxMembers {
		c.Rule = core.Majority(c.members())
	}
	or(&c.TTL, 10*time.Second)
	or(&c.MaxTTL, 2*c.TTL)
	or(&c.RenewEvery, c.TTL/3)
	or(&c.CallLimit, min(c.TTL/time.Duration(c.members()+1), time.Second))
	or(&c.ReleaseLimit, 5*time.Second)
	or(&c.BackoffMin, 10*time.Millisecond)
	or(&c.BackoffMax, time.Second)
	or(&c.DriftFixed, 2*time.Millisecond)
	if c.DriftPPM == 0 {
		c.DriftPPM = 10_000
	}
	or(&c.Duration, 20*time.Second)
	or(&c.Work.Think, 500*time.Millisecond)
	or(&c.Work.Hold, 3*c.TTL)
	or(&c.Work.Wait, 2*c.TTL)
	or(&c.Work.Write, max(c.Work.Hold/4, time.Millisecond))
	return c
}

// members is how many a lease asks: zones, or stores of a flat set.
func (c *Config) members() int {
	if c.Zones > 0 {
		return c.Zones
	}
	return c.Stores
}

// canLeave reports whether each of the stores in out could leave quarantine by
// a quorum of those it is a direct member with and that are not out.
func (c *Config) canLeave(out core.Set) bool {
	if c.Zones == 0 {
		return c.Rule.Met(core.Full(c.Stores) &^ out)
	}
	n := c.Stores / c.Zones
	for z := range c.Zones {
		if !core.Majority(n).Met(core.Full(n) &^ (out >> (z * n))) {
			return false
		}
	}
	return true
}

// Check says what is wrong with the configuration, if anything is.
func (c Config) Check() error {
	f := c.filled()
	switch {
	case f.Stores < 1 || f.Stores > core.MaxMembers:
		return fmt.Errorf("sim: %d stores: a set has 1 to %d", f.Stores, core.MaxMembers)
	case f.Zones < 0 || f.Zones > 0 && f.Stores%f.Zones != 0:
		return fmt.Errorf("sim: %d stores make no %d zones of equally many", f.Stores, f.Zones)
	case f.Rule.N() != f.members():
		return fmt.Errorf("sim: a strategy over %d members for a set of %d", f.Rule.N(), f.members())
	case f.Clients < 1 || f.Keys < 1:
		return fmt.Errorf("sim: %d clients and %d keys: at least one of each", f.Clients, f.Keys)
	case f.TTL < 100*time.Millisecond || f.MaxTTL < f.TTL || f.MaxTTL > time.Hour:
		return fmt.Errorf("sim: TTL %v and MaxTTL %v: 100 ms <= TTL <= MaxTTL <= 1 h", f.TTL, f.MaxTTL)
	case f.Queues && (!f.Watches || f.Zones > 0):
		return fmt.Errorf("sim: queues need watches, and composites keep none")
	case f.RenewEvery > f.TTL/2:
		return fmt.Errorf("sim: renewing every %v leaves no second chance within TTL %v: at most half of it", f.RenewEvery, f.TTL)
	case f.Duration < 0 || f.Duration > 24*time.Hour:
		return fmt.Errorf("sim: a run of %v: at most a day", f.Duration)
	case f.DriftPPM < 0 || f.DriftPPM >= million:
		return fmt.Errorf("sim: a drift of %d ppm: at least 0, below a million", f.DriftPPM)
	}
	if a, b, split := f.Rule.Split(); split && f.Mutant != DisjointQuorums {
		return fmt.Errorf("sim: both %s and %s satisfy the strategy, and share no store", letters(a), letters(b))
	}
	for _, fault := range f.Plan.Faults {
		if err := f.checkFault(fault); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkFault(f Fault) error {
	if f.Kind >= faultKinds {
		return fmt.Errorf("sim: fault kind %d is unknown", f.Kind)
	}
	if f.At < 0 || f.For < 0 {
		return fmt.Errorf("sim: %v: a fault cannot begin or end before the run", f)
	}
	if f.Stores&^core.Full(c.Stores) != 0 {
		return fmt.Errorf("sim: %v: there are only %d stores", f, c.Stores)
	}
	if !f.Kind.ofClients() && f.Stores == 0 {
		return fmt.Errorf("sim: %v: it names no store", f)
	}
	if f.Rate <= -million || f.Rate > 100*million {
		return fmt.Errorf("sim: %v: a clock cannot run like that", f)
	}
	for _, i := range f.Clients {
		if i < 0 || i >= c.Clients {
			return fmt.Errorf("sim: %v: there are only %d clients", f, c.Clients)
		}
	}
	return nil
}

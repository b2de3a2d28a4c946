package quorumsim

import (
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// Order says how many stores are asked at once.
type Order uint8

// The orders.
const (
	InOrder       Order = iota // one after another
	FirstThenRest              // the first alone, then the rest at once
	AllAtOnce
)

// Config says what a world is made of. The zero value of a field is its
// default, as in package quorum.
type Config struct {
	// Job is what each client's process does, and Script the same as text: one
	// of the two. See [Job], and the package's text on scripts.
	Job    func(*Job)
	Script string

	Clients  int           // default 3
	Duration time.Duration // of the run; default 1 min, at most a day

	Stores int // 1 to 16; default 5
	// Strategy reports whether votes are enough: bit i is store i. It must be
	// monotone, and two disjoint sets of votes must not both be enough; Run
	// refuses it otherwise. The default is [Majority]. A strategy s of package
	// quorum is func(v uint32, n int) bool { return s.Met(quorum.Votes(v), n) }.
	Strategy func(votes uint32, stores int) bool
	Order    Order // default InOrder

	TTL        time.Duration // default 15 s
	MaxTTL     time.Duration // default 4 TTL; a store that may have forgotten stays out that long
	RenewEvery time.Duration // default TTL/3, at most TTL/2
	DriftPPM   int64         // the drift allowed for, in millionths of the TTL; default 10,000

	Latency time.Duration // of a message, one way; default 1 ms
	Jitter  time.Duration // at most this much more, mostly far less
	Skew    time.Duration // the stores' clocks differ by at most this at the start

	// NoFence names the resources that do not look at tokens. Every other one
	// refuses a token lower than the highest that it has seen.
	NoFence []string

	Faults []Fault
	// Swarm lets the seed draw the faults: how many, of which kinds, when and
	// where, how fast each clock runs within the drift allowed for and, unless
	// Latency or Jitter is given, how bad the network is. It draws only what the
	// lock must withstand.
	Swarm bool

	bugs   core.Bugs // known mistakes, for tests of the checkers
	mutant sim.Mutant
}

// Majority is the strategy that more than half of the stores must vote.
func Majority(votes uint32, stores int) bool { return bits.OnesCount32(votes) > stores/2 }

// Unanimous is the strategy that every store must vote.
func Unanimous(votes uint32, stores int) bool { return bits.OnesCount32(votes) == stores }

// filled returns the configuration with defaults for what is zero.
func (c Config) filled() Config {
	or := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	if c.Clients == 0 {
		c.Clients = 3
	}
	if c.Stores == 0 {
		c.Stores = 5
	}
	if c.Strategy == nil {
		c.Strategy = Majority
	}
	or(&c.Duration, time.Minute)
	or(&c.TTL, 15*time.Second)
	or(&c.MaxTTL, 4*c.TTL)
	or(&c.RenewEvery, c.TTL/3)
	if !c.Swarm {
		or(&c.Latency, time.Millisecond)
	}
	return c
}

// world returns the configuration as the world takes it, or what is wrong with it.
func (c Config) world() (sim.Config, error) {
	out := sim.Config{
		Stores: c.Stores, Clients: c.Clients, Keys: 1, Order: core.Order(c.Order),
		TTL: c.TTL, MaxTTL: c.MaxTTL, RenewEvery: c.RenewEvery, DriftPPM: c.DriftPPM, Duration: c.Duration,
		Swarm: c.Swarm, Rates: c.Swarm, Skew: c.Skew, Bugs: c.bugs, Mutant: c.mutant,
		Plan: sim.Plan{Noise: sim.Noise{Base: c.Latency, Spread: c.Jitter}},
	}
	switch {
	case c.Stores < 1 || c.Stores > core.MaxMembers:
		return out, fmt.Errorf("%d stores: a set has 1 to %d", c.Stores, core.MaxMembers)
	case c.Order > AllAtOnce:
		return out, fmt.Errorf("order %d is none of InOrder, FirstThenRest, AllAtOnce", c.Order)
	case c.RenewEvery < 0 || c.Latency < 0 || c.Jitter < 0 || c.Skew < 0 || c.Duration < 0:
		return out, errors.New("a negative duration: all of them are at least 0; Ask.NoRenew switches renewal off")
	case c.Swarm && len(c.Faults) > 0:
		return out, errors.New("a swarm draws the faults: leave Faults or Swarm out")
	}
	rule, err := tabulate(c.Strategy, c.Stores)
	if err != nil {
		return out, err
	}
	out.Rule = rule
	for _, f := range c.Faults {
		fault, err := f.simulated(c.Stores, c.Duration)
		if err != nil {
			return out, err
		}
		out.Plan.Faults = append(out.Plan.Faults, fault)
	}
	if err := out.Check(); err != nil {
		return out, errors.New(strings.TrimPrefix(err.Error(), "sim: "))
	}
	return out, nil
}

// tabulate writes a strategy out and proves what a quorum needs but for two
// quorums that share no store, which [sim.Config.Check] looks for.
func tabulate(met func(uint32, int) bool, stores int) (*core.Rule, error) {
	rule := core.Tabulate(stores, func(s core.Set) bool { return met(uint32(s), stores) })
	if small, large, bad := rule.Shrinks(); bad {
		return nil, fmt.Errorf("the strategy is met by the votes %b and not by %b: a vote more must not lose a lock", small, large)
	}
	if !rule.Met(core.Full(stores)) {
		return nil, fmt.Errorf("the strategy is not met even by all %d stores", stores)
	}
	return rule, nil
}

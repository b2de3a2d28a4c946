package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// simShape is what flags fix of a simulated world. What is zero, the seed draws.
type simShape struct {
	stores   int
	strategy string
	ttl      time.Duration
	order    string
	drift    string
	clients  int
	duration time.Duration

	base sim.Config
}

func (s *simShape) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.IntVar(&s.stores, "stores", 0, "how many stores, 1 to 16 (default: the seed draws it)")
	f.StringVar(&s.strategy, "strategy", "majority", "how many must agree: majority or unanimous")
	f.DurationVar(&s.ttl, "ttl", 0, "TTL of a lock (default: the seed draws it)")
	f.StringVar(&s.order, "order", "", "how stores are asked: "+orderNames+" (default: the seed draws it)")
	f.StringVar(&s.drift, "drift", "1%", "how much faster than another a clock may run, from 0.0001% to 50%")
	f.IntVar(&s.clients, "clients", 0, "how many clients contend (default: the seed draws it)")
	f.DurationVar(&s.duration, "duration", 0, "simulated time until the faults stop (default: the seed draws it)")
}

const orderNames = "in-order, first-then-rest or all-at-once"

// check turns the flags into a configuration.
func (s *simShape) check(given func(string) bool) error {
	for _, name := range []string{"stores", "clients"} {
		if n := map[string]int{"stores": s.stores, "clients": s.clients}[name]; given(name) && n < 1 {
			return usagef("--%s %d: at least 1", name, n)
		}
	}
	for _, name := range []string{"ttl", "duration"} {
		if d := map[string]time.Duration{"ttl": s.ttl, "duration": s.duration}[name]; given(name) && d <= 0 {
			return usagef("--%s %v: above zero", name, d)
		}
	}
	s.base = sim.Config{Stores: s.stores, TTL: s.ttl, Clients: s.clients, Duration: s.duration}
	if s.stores > core.MaxMembers {
		return usagef("--stores %d: a set has 1 to %d", s.stores, core.MaxMembers)
	}
	if _, err := ruleOf(s.strategy, 1); err != nil {
		return usagef("--strategy: %v", err)
	}
	if s.order != "" {
		order, err := orderOf(s.order)
		if err != nil {
			return usagef("--order: %v", err)
		}
		s.base.Order, s.base.KeepOrder = order, true
	}
	ppm, err := ppmOf(s.drift)
	if err != nil {
		return usagef("--drift: %v", err)
	}
	s.base.DriftPPM = ppm
	if s.ttl > 0 {
		s.base.MaxTTL = 2 * s.ttl
	}
	if err := s.base.Check(); err != nil {
		return usagef("%s", strings.TrimPrefix(err.Error(), "sim: "))
	}
	return nil
}

// again runs a seed in a world that is given.
func (s *simShape) again(seed uint64, cfg sim.Config) *sim.Report {
	r := sim.Run(cfg, sim.Seeded(seed))
	r.Seed = seed
	return r
}

func (s *simShape) config(seed uint64, trace bool) sim.Config {
	cfg := sim.Random(s.base, sim.Seeded(seed))
	cfg.Rule, _ = ruleOf(s.strategy, cfg.Stores)
	cfg.Trace = trace
	return cfg
}

// replay is the command that repeats the world of a seed.
func (s *simShape) replay(seed uint64) string {
	b := strings.Builder{}
	fmt.Fprintf(&b, "quorum sim --seed %d --trace", seed)
	add := func(name, value, usual string) {
		if value != usual {
			b.WriteString(" --" + name + " " + value)
		}
	}
	add("stores", strconv.Itoa(s.stores), "0")
	add("strategy", s.strategy, "majority")
	add("ttl", s.ttl.String(), "0s")
	add("order", s.order, "")
	add("drift", s.drift, "1%")
	add("clients", strconv.Itoa(s.clients), "0")
	add("duration", s.duration.String(), "0s")
	return b.String()
}

func ruleOf(name string, stores int) (*core.Rule, error) {
	switch name {
	case "majority":
		return core.Majority(stores), nil
	case "unanimous":
		return core.Tabulate(stores, func(s core.Set) bool { return s.Len() == stores }), nil
	}
	return nil, fmt.Errorf("%q is neither majority nor unanimous", name)
}

func orderOf(name string) (core.Order, error) {
	switch name {
	case "in-order":
		return core.InOrder, nil
	case "first-then-rest":
		return core.FirstThenRest, nil
	case "all-at-once":
		return core.AllAtOnce, nil
	}
	return 0, fmt.Errorf("%q is none of %s", name, orderNames)
}

// ppmOf reads a percentage, in millionths. Zero is not among them: the
// allowance of a clock that is never wrong is no allowance.
func ppmOf(text string) (int64, error) {
	number, ok := strings.CutSuffix(text, "%")
	if !ok {
		return 0, fmt.Errorf("%q has no unit: write 1%% for a hundredth", text)
	}
	percent, err := strconv.ParseFloat(number, 64)
	if ppm := int64(percent * 10_000); err == nil && ppm >= 1 && ppm <= 500_000 {
		return ppm, nil
	}
	return 0, fmt.Errorf("%q is no percentage between 0.0001%% and 50%%", text)
}

func itoa(seed uint64) string { return strconv.FormatUint(seed, 10) }

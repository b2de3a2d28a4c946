package sim

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// settings are the lines of a scenario that make its world.
var settings = map[string]func(s *Scenario, w []string) error{
	"stores":   func(s *Scenario, w []string) error { return number(w, &s.Config.Stores, 1, core.MaxMembers) },
	"quorum":   quorumOf,
	"clients":  clientNames,
	"ttl":      func(s *Scenario, w []string) error { return span(w, &s.Config.TTL) },
	"max ttl":  func(s *Scenario, w []string) error { return span(w, &s.Config.MaxTTL) },
	"renew":    renew,
	"order":    order,
	"call":     func(s *Scenario, w []string) error { return span(w, &s.Config.CallLimit) },
	"until":    func(s *Scenario, w []string) error { return span(w, &s.Config.Duration) },
	"latency":  func(s *Scenario, w []string) error { return span(w, &s.Config.Plan.Noise.Base) },
	"spread":   func(s *Scenario, w []string) error { return span(w, &s.Config.Plan.Noise.Spread) },
	"late by":  func(s *Scenario, w []string) error { return span(w, &s.Config.Plan.Noise.LateBy) },
	"late":     func(s *Scenario, w []string) error { return share(w, &s.Config.Plan.Noise.Late) },
	"loss":     func(s *Scenario, w []string) error { return share(w, &s.Config.Plan.Noise.Loss) },
	"doubled":  func(s *Scenario, w []string) error { return share(w, &s.Config.Plan.Noise.Double) },
	"drift":    drift,
	"watches":  func(s *Scenario, w []string) error { s.Config.Watches = true; return none(w) },
	"queues":   func(s *Scenario, w []string) error { s.Config.Watches, s.Config.Queues = true, true; return none(w) },
	"unsteady": func(s *Scenario, w []string) error { s.Config.Unsteady = true; return none(w) },
	"settles":  func(s *Scenario, w []string) error { s.Config.Open = false; return none(w) },
	"mistake":  mistake,
	"show":     func(s *Scenario, w []string) error { s.Show = append(s.Show, w...); return nil },
	"breaks":   func(s *Scenario, w []string) error { s.Breaks = append(s.Breaks, strings.Join(w, " ")); return nil },
	"seed":     seed,
}

func one(w []string) (string, error) {
	if len(w) != 1 {
		return "", fmt.Errorf("one value is needed, not %d", len(w))
	}
	return w[0], nil
}

func none(w []string) error {
	if len(w) > 0 {
		return fmt.Errorf("%q is one word too many", w[0])
	}
	return nil
}

func number(w []string, to *int, least, most int) error {
	word, err := one(w)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(word)
	if err != nil || n < least || n > most {
		return fmt.Errorf("%q is no number between %d and %d", word, least, most)
	}
	*to = n
	return nil
}

func span(w []string, to *time.Duration) error {
	word, err := one(w)
	if err != nil {
		return err
	}
	d, err := time.ParseDuration(word)
	if err != nil || d < 0 {
		return fmt.Errorf("%q is no time such as 10s or 250ms", word)
	}
	*to = d
	return nil
}

func share(w []string, to *uint64) error {
	word, err := one(w)
	if err != nil {
		return err
	}
	m, err := millionths(strings.TrimSuffix(word, "%"))
	if err != nil || m < 0 || m > million {
		return fmt.Errorf("%q is no share such as 5%%", word)
	}
	*to = uint64(m)
	return nil
}

// quorumOf is "quorum 3": any so many stores.
func quorumOf(s *Scenario, w []string) error {
	k := 0
	if s.Config.Stores == 0 {
		return fmt.Errorf("say \"stores N\" before \"quorum\"")
	}
	if err := number(w, &k, 1, s.Config.Stores); err != nil {
		return err
	}
	s.Config.Rule = core.Tabulate(s.Config.Stores, func(set core.Set) bool { return set.Len() >= k })
	return nil
}

func clientNames(s *Scenario, w []string) error {
	for _, name := range w {
		if strings.ToUpper(name[:1]) != name[:1] || name[0] < 'A' {
			return fmt.Errorf("client %q: clients begin with a capital, as stores do not", name)
		}
	}
	s.Clients = append(s.Clients, w...)
	return nil
}

func renew(s *Scenario, w []string) error {
	if word, err := one(w); err == nil && word == "never" {
		s.Config.RenewEvery = -1
		return nil
	}
	return span(w, &s.Config.RenewEvery)
}

func order(s *Scenario, w []string) error {
	for o := core.InOrder; o <= core.AllAtOnce; o++ {
		if o.String() == strings.Join(w, " ") {
			s.Config.Order = o
			return nil
		}
	}
	return fmt.Errorf("an order is one of: in order, first then rest, all at once")
}

// drift is "drift 1%": how far clocks may differ in rate.
func drift(s *Scenario, w []string) error {
	word, err := one(w)
	if err == nil {
		s.Config.DriftPPM, err = millionths(strings.TrimSuffix(word, "%"))
	}
	return err
}

func seed(s *Scenario, w []string) error {
	word, err := one(w)
	if err == nil {
		s.Seed, err = strconv.ParseUint(word, 10, 64)
	}
	return err
}

// bugNames are the mistakes of the protocol that a scenario can switch on.
var bugNames = []struct {
	name string
	bug  core.Bugs
}{
	{"no write-back", core.BugNoWriteBack},
	{"refused write-back counts", core.BugWriteBackUnowned},
	{"answers not compared", core.BugAnswerNotCompared},
	{"one owner", core.BugOneOwner},
	{"unknown is no", core.BugUnknownIsNo},
	{"caller's context", core.BugCallersContext},
	{"validity from the reply", core.BugValidityFromReply},
	{"no drift allowance", core.BugNoDrift},
	{"early read of steps", core.BugEarlyStepRead},
	{"void answers count", core.BugVoidCounts},
	{"late grant kept", core.BugLateGrantKept},
	{"lost lease revives", core.BugReviveLost},
}

// mistake switches a known mistake on.
func mistake(s *Scenario, w []string) error {
	text := strings.Join(w, " ")
	var names []string
	for _, b := range bugNames {
		if b.name == text {
			s.Config.Bugs |= b.bug
			return nil
		}
		names = append(names, b.name)
	}
	for m := NoMutant + 1; m < mutants; m++ {
		if m.String() == text {
			s.Config.Mutant = m
			return nil
		}
		names = append(names, m.String())
	}
	return fmt.Errorf("unknown mistake; known are: %s", strings.Join(names, ", "))
}

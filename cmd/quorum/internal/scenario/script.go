package scenario

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// step is one line of a script.
type step struct {
	at     time.Duration
	client int
	verb   string
	anyway bool
	ttl    time.Duration // of extend
	ask    sim.Request
}

func (s *step) key() int { return s.ask.Key }

func (f *File) script(c *sim.Config) error {
	f.steps = nil
	for i, line := range strings.Split(f.Script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s, err := parseStep(c, words)
		if err != nil {
			return fmt.Errorf("line %d: %w", i+1, err)
		}
		f.steps = append(f.steps, s)
	}
	if len(f.steps) == 0 {
		if f.Script != "" {
			return errors.New("has no event")
		}
		return nil
	}
	return nil
}

func parseStep(c *sim.Config, words []string) (s step, err error) {
	if len(words) < 4 {
		return s, fmt.Errorf("%q: an event is a time, a client, a verb and a key", strings.Join(words, " "))
	}
	if s.at, err = time.ParseDuration(words[0]); err != nil || s.at < 0 || s.at > c.Duration {
		return s, fmt.Errorf("time %q: a duration from 0s to that of the run, %v", words[0], c.Duration)
	}
	if s.client, err = strconv.Atoi(words[1]); err != nil || s.client < 0 || s.client >= c.Clients {
		return s, fmt.Errorf("client %q: a number from 0 to %d", words[1], c.Clients-1)
	}
	key, ok := strings.CutPrefix(words[3], "k")
	n, err := strconv.Atoi(key)
	if !ok || err != nil || n < 0 || n >= c.Keys {
		return s, fmt.Errorf("key %q: one of k0 to k%d", words[3], c.Keys-1)
	}
	s.verb, s.ask = words[2], sim.Request{Key: n, Wait: -1, Order: c.Order}
	rest := words[4:]
	switch {
	case s.verb == "acquire":
		for _, w := range rest {
			if err = s.option(c, w); err != nil {
				return s, err
			}
		}
	case (s.verb == "release" || s.verb == "cancel") && len(rest) == 0:
	case s.verb == "write" && (len(rest) == 0 || len(rest) == 1 && rest[0] == "anyway"):
		s.anyway = len(rest) == 1
	case s.verb == "extend" && len(rest) == 1:
		if s.ttl, err = time.ParseDuration(rest[0]); err != nil || s.ttl <= 0 {
			return s, fmt.Errorf("extend by %q: a duration above 0s", rest[0])
		}
	default:
		return s, fmt.Errorf("%q is none of: acquire KEY [OPTION...]; extend KEY TTL; write KEY [anyway]; cancel KEY; release KEY",
			strings.Join(words[2:], " "))
	}
	return s, nil
}

// option reads one word after acquire.
func (s *step) option(c *sim.Config, word string) (err error) {
	name, value, _ := strings.Cut(word, "=")
	var d time.Duration
	switch name {
	case "wait", "ttl", "maxhold":
		if d, err = time.ParseDuration(value); err != nil || d <= 0 {
			return fmt.Errorf("%s: a duration above 0s", word)
		}
	}
	switch longest := max(c.MaxTTL, c.TTL); {
	case name == "wait":
		s.ask.Wait = d
	case name == "maxhold":
		s.ask.MaxHold = d
	case name == "ttl" && (d < 100*time.Millisecond || d > longest):
		return fmt.Errorf("%s: 100ms to max-ttl, %v", word, longest)
	case name == "ttl":
		s.ask.TTL = d
	case word == "try":
		s.ask.Wait = 0
	case word == "shared":
		s.ask.Mode = core.Shared
	case word == "norenew":
		s.ask.NoRenew = true
	case word == "failonoutage":
		s.ask.FailOutage = true
	default:
		return fmt.Errorf("%q is none of wait=D, ttl=D, maxhold=D, try, shared, norenew, failonoutage", word)
	}
	return nil
}

package quorumsim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// step is one event of a script.
type step struct {
	at       time.Duration
	client   int
	verb     string
	key      string
	resource string
	anyway   bool
	ttl      time.Duration // of extend
	ask      Ask
	text     string
}

// parse turns the configuration's script into a job.
func parse(cfg Config) (func(*Job), error) {
	var steps []step
	for i, line := range strings.Split(cfg.Script, "\n") {
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		s, err := parseStep(cfg, words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		steps = append(steps, s)
	}
	if len(steps) == 0 {
		return nil, errors.New("has no event")
	}
	return func(j *Job) { play(j, steps) }, nil
}

func parseStep(cfg Config, words []string) (s step, err error) {
	if len(words) < 4 {
		return s, fmt.Errorf("%q: an event is a time, a client, a verb and what it is about", strings.Join(words, " "))
	}
	if s.at, err = time.ParseDuration(words[0]); err != nil || s.at < 0 || s.at > cfg.Duration {
		return s, fmt.Errorf("time %q: a duration from 0s to that of the run, %v", words[0], cfg.Duration)
	}
	if s.client, err = strconv.Atoi(words[1]); err != nil || s.client < 0 || s.client >= cfg.Clients {
		return s, fmt.Errorf("client %q: a number below that of clients, %d", words[1], cfg.Clients)
	}
	s.verb, s.key = words[2], words[3]
	rest := words[4:]
	switch {
	case s.verb == "acquire":
		s.ask, err = parseAsk(cfg, rest)
	case s.verb == "release" && len(rest) == 0:
	case s.verb == "extend" && len(rest) == 1:
		if s.ttl, err = time.ParseDuration(rest[0]); err == nil && (s.ttl <= 0 || s.ttl > cfg.MaxTTL) {
			err = fmt.Errorf("extend by %v: above 0s, at most MaxTTL %v", s.ttl, cfg.MaxTTL)
		}
	case s.verb == "write" && (len(rest) == 1 || len(rest) == 2 && rest[1] == "anyway"):
		s.resource, s.anyway = rest[0], len(rest) == 2
	case s.verb == "log":
		s.text = strings.Join(words[3:], " ")
	default:
		err = fmt.Errorf("%q is none of: acquire KEY [OPTION...]; extend KEY TTL; write KEY RESOURCE [anyway]; release KEY; log TEXT",
			strings.Join(words[2:], " "))
	}
	return s, err
}

func parseAsk(cfg Config, words []string) (a Ask, err error) {
	for _, w := range words {
		name, value, hasValue := strings.Cut(w, "=")
		flags := map[string]*bool{"try": &a.Try, "shared": &a.Shared, "norenew": &a.NoRenew, "failonoutage": &a.FailOnOutage}
		times := map[string]*time.Duration{"wait": &a.Wait, "ttl": &a.TTL, "maxhold": &a.MaxHold}
		switch flag, d := flags[name], times[name]; {
		case flag != nil && !hasValue:
			*flag = true
		case d != nil && hasValue:
			if *d, err = time.ParseDuration(value); err != nil || *d <= 0 {
				return a, fmt.Errorf("%s: a duration above 0s", w)
			}
		default:
			return a, fmt.Errorf("%q is none of wait=D, ttl=D, maxhold=D, try, shared, norenew, failonoutage", w)
		}
	}
	if a.TTL != 0 && (a.TTL < 100*time.Millisecond || a.TTL > cfg.MaxTTL) {
		return a, fmt.Errorf("ttl=%v: 100ms to MaxTTL %v", a.TTL, cfg.MaxTTL)
	}
	return a, nil
}

// play carries out what a script says of one client, from when its process
// began: what a dead one missed is not made up for.
func play(j *Job, steps []step) {
	held := map[string]*Lease{}
	born := j.r.world.Now()
	for i := range steps {
		s := &steps[i]
		if s.client != j.Client() || s.at < born {
			continue
		}
		if wait := s.at - j.r.world.Now(); wait > 0 {
			j.Sleep(wait)
		}
		if err := s.play(j, held); err != nil {
			j.Log("cannot %s %s: %s", s.verb, s.key, strings.ReplaceAll(err.Error(), "quorumsim: ", ""))
		}
	}
	j.Sleep(j.r.cfg.Duration) // a script says when a lease is given back
}

func (s *step) play(j *Job, held map[string]*Lease) error {
	l := held[s.key]
	switch {
	case s.verb == "log":
		j.Log("%s", s.text)
		return nil
	case s.verb == "acquire":
		lease, err := j.Acquire(s.key, s.ask)
		if err == nil {
			held[s.key] = lease
		}
		return err
	case l == nil:
		return errors.New("never acquired")
	}
	switch s.verb {
	case "extend":
		return l.Extend(s.ttl)
	case "release":
		return l.Release()
	}
	if err := l.Err(); err != nil && !s.anyway {
		return err
	}
	return j.Write(s.resource, l.Token())
}

package sim

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Play runs a scenario.
func (s *Scenario) Play() *Report {
	choices := Calm()
	if s.Seed != 0 {
		choices = Seeded(s.Seed)
	}
	cfg := s.Config
	cfg.Program = func(*Client) {} // the actions are all there is
	w := NewWorld(cfg, choices)
	held := make([]*Lease, len(s.Clients))
	for _, a := range s.Actions {
		c := w.clients[a.Client]
		w.push(event{at: a.At, kind: hook, fn: func() { c.After(0, func() { a.do(c, &held[c.id]) }) }})
	}
	w.run()
	if w.trace != nil {
		w.trace.Names = s.Clients
	}
	return w.report
}

// do does one action; held is the client's latest lease.
func (a *Action) do(c *Client, held **Lease) {
	l := *held
	switch {
	case a.Verb == "acquires" || a.Verb == "tries":
		r := a.Request
		r.Order = c.w.cfg.Order
		*held = c.Acquire(r, nil)
	case a.Verb == "closes":
		c.Close(nil)
	case l == nil:
	case a.Verb == "releases":
		l.Release()
	case a.Verb == "cancels":
		l.Cancel()
	case a.Verb == "extends":
		l.Extend(1, a.TTL)
	case a.Verb == "promotes":
		l.Promote(2)
	case a.Verb == "demotes":
		l.Demote(3)
	default:
		l.Write(a.Verb == "writes anyway")
	}
}

// Tell says what happened, a line an event.
func (s *Scenario) Tell(r *Report) string {
	t := teller{s: s, r: r, held: map[int]bool{}}
	for i := range r.Trace.Events {
		if line := t.line(&r.Trace.Events[i]); line != "" {
			at := r.Trace.Events[i].At
			fmt.Fprintf(&t.b, "%9.3fs  %s\n", at.Seconds(), line)
		}
	}
	return t.b.String()
}

type teller struct {
	s *Scenario
	r *Report
	b strings.Builder

	held map[int]bool // leases that were acquired
}

func (t *teller) who(e *Event) string {
	if e.Client < 0 {
		return "?"
	}
	return t.s.Clients[e.Client]
}

func (t *teller) shows(what string) bool { return slices.Contains(t.s.Show, what) }

// Token says a token as its distance from where names start at the beginning
// of a run: as 7, or as 2 steps + 7.
func Token(token int64) string {
	first := epoch / int64(core.StepPeriod/time.Microsecond)
	steps, low := token>>core.StepBits-first, token&(1<<core.StepBits-1)
	if steps == 0 {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d steps + %d", steps, low)
}

func (t *teller) line(e *Event) string {
	who := t.who(e)
	switch e.What {
	case Asks:
		if e.Mode == core.Shared {
			return who + " asks to read"
		}
		return who + " asks for the lock"
	case Acquires:
		t.held[e.Lease] = true
		return fmt.Sprintf("%s HOLDS, token %s, until %.3fs", who, Token(e.Token), e.Until.Seconds())
	case Promotes:
		return fmt.Sprintf("%s is PROMOTED to a writer, token %s, until %.3fs", who, Token(e.Token), e.Until.Seconds())
	case Demotes:
		return who + " is a reader from now on, token " + Token(e.Token)
	case Stays:
		return who + " stays what it was: " + failureNames[e.Failure]
	case Renews:
		if t.shows("renewals") {
			return fmt.Sprintf("%s renews until %.3fs", who, e.Until.Seconds())
		}
	case Misses:
		if t.shows("renewals") {
			return who + " finds too few stores to renew, and still holds"
		}
	case Retries:
		if t.shows("retries") {
			return who + " did not get it (" + failureNames[e.Failure] + "), and waits"
		}
	case Fails:
		return who + " gives up: " + failureNames[e.Failure]
	case Loses:
		return who + " knows that it is lost: " + reasonNames[e.Reason]
	case GivesBack:
		return who + " gives it back"
	case Writes:
		return who + " writes, token " + Token(e.Token)
	case WriteDone:
		if e.Fenced {
			return "the fence lets the write of " + who + " in"
		}
	case WriteFails:
		return "the fence REFUSES the write of " + who
	case FaultOn:
		return "FAULT " + t.fault(e.Fault)
	case FaultOff:
		if f := &t.s.Config.Plan.Faults[e.Fault]; f.For > 0 {
			return "over: " + f.Kind.String() + t.whom(f)
		}
	case Refills:
		return "store " + StoreName(e.Store) + " votes again, brought back by " + who
	case Closes:
		return who + " closes its locker"
	case Hears:
		if t.shows("wakes") && (e.Wake == core.WakeTurn || e.Wake == core.WakeNext || e.Wake == core.WakeChanged && !t.s.Config.Queues) {
			return fmt.Sprintf("%s hears from %s: %s", who, StoreName(e.Store), WakeName(e.Wake))
		}
	case Breaks:
		return "BROKEN " + t.r.Violations[e.Violation].Checker.String() + ": " + t.violation(e)
	default:
		return t.message(e, who)
	}
	return ""
}

func (t *teller) violation(e *Event) string {
	text := t.r.Violations[e.Violation].Text
	for i, name := range t.s.Clients {
		text = strings.ReplaceAll(text, fmt.Sprintf("client %d", i), name)
	}
	return text
}

// message says what a message does, if messages are shown.
func (t *teller) message(e *Event, who string) string {
	vote := e.What == Carried && e.Verb == core.Acquire && e.Outcome == core.Granted
	if !t.shows("messages") && !(t.shows("votes") && vote) || e.Verb == core.ReadStep {
		return ""
	}
	if e.Verb == core.Extend && e.Token == e.Floor && t.held[e.Lease] && !t.shows("renewals") {
		return ""
	}
	if e.Key > 0 {
		who += " (key " + fmt.Sprint(e.Key) + ")"
	}
	verb := e.Verb.String()
	if e.Kind != core.New {
		verb = e.Kind.String()
	}
	if e.Wait.Queued() {
		verb = e.Wait.String()
	}
	switch e.What {
	case Carried:
		if e.Verb > core.Release {
			return fmt.Sprintf("%s: %s of %s: %v", StoreName(e.Store), verb, who, e.Outcome)
		}
		text := fmt.Sprintf("%s: %s %s/%d", StoreName(e.Store), verb, who, e.Attempt)
		if e.Floor > 0 {
			text += " floor " + Token(e.Floor)
		}
		text += ": " + e.Outcome.String()
		if e.Outcome == core.Granted && e.Token > 0 {
			text += " " + Token(e.Token)
		}
		return text
	case Lost:
		if e.Lease > 0 || !e.Answer {
			return fmt.Sprintf("lost on the way between %s and %s", who, StoreName(e.Store))
		}
	case TimedOut:
		return fmt.Sprintf("%s waits no longer for %s", who, StoreName(e.Store))
	}
	return ""
}

var failureNames = [...]string{"", "held by another", "too few stores answer", "another set", "too late", "given up"}

var wakeNames = [...]string{"the watch stands", "a vote ended", "its turn", "it is next", "the watch ended"}

// WakeName says in words what a store told.
func WakeName(k core.WakeKind) string { return wakeNames[k] }

func (t *teller) whom(f *Fault) string {
	text := ""
	for _, c := range f.Clients {
		text += " " + t.s.Clients[c]
	}
	if f.Stores != 0 {
		text += " " + letters(f.Stores)
	}
	return text
}

func (t *teller) fault(i int) string {
	f := &t.s.Config.Plan.Faults[i]
	text := f.Kind.String() + t.whom(f)
	if f.Amount != 0 {
		text += " by " + f.Amount.String()
	}
	if f.Rate != 0 {
		text += fmt.Sprintf(" by %g %%", float64(f.Rate)/10_000)
	}
	if f.For > 0 {
		text += " for " + f.For.String()
	}
	return text
}

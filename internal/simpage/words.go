package simpage

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// words puts the events of one trace into sentences.
type words struct {
	trace      *sim.Trace
	violations []sim.Violation
	step       int64 // that of the lowest token: tokens are shown relative to it
	verbs      map[uint64]string
}

func newWords(t *sim.Trace, violations []sim.Violation) *words {
	w := &words{trace: t, violations: violations, step: -1, verbs: map[uint64]string{}}
	for i := range t.Events {
		e := &t.Events[i]
		if s := e.Token >> core.StepBits; e.Token > 0 && (w.step < 0 || s < w.step) {
			w.step = s
		}
		if e.What == sim.Sent {
			w.verbs[e.Msg] = verb(e)
		}
	}
	return w
}

// token shows a token as its number within its step, with how many steps that
// lies above the lowest one of the run: 7, 1:3.
func (w *words) token(token int64) string {
	number := strconv.FormatInt(token&(1<<core.StepBits-1), 10)
	if steps := token>>core.StepBits - w.step; steps != 0 {
		return strconv.FormatInt(steps, 10) + ":" + number
	}
	return number
}

// verb says what a request asks for.
func verb(e *sim.Event) string {
	switch {
	case e.Verb == core.Acquire && e.Kind != core.New:
		return e.Kind.String()
	case e.Wait == core.WaitQueue:
		return "place in line"
	}
	return e.Verb.String()
}

func seconds(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Round(time.Millisecond).Milliseconds())/1000, 'f', -1, 64) + " s"
}

func (w *words) event(e *sim.Event) string {
	client, store, key := w.trace.Who(e.Client), "", fmt.Sprintf("k%d", e.Key)
	if e.Store >= 0 {
		store = sim.StoreName(e.Store)
	}
	switch e.What {
	case sim.Sent, sim.Lost, sim.Carried, sim.Answered, sim.TimedOut:
		return w.message(e, client, store)
	case sim.Writes, sim.WriteDone, sim.WriteFails:
		return w.write(e, client)
	case sim.Asks:
		if e.Mode == core.Shared {
			key += " as a reader"
		}
		return fmt.Sprintf("%s asks for %s (lease %d)", client, key, e.Lease)
	case sim.Acquires:
		return fmt.Sprintf("%s holds %s with token %s, and may believe so until %s (lease %d)", client, key, w.token(e.Token), seconds(e.Until), e.Lease)
	case sim.Promotes:
		return fmt.Sprintf("%s is promoted: it holds %s alone, with token %s, until %s", client, key, w.token(e.Token), seconds(e.Until))
	case sim.Demotes:
		return fmt.Sprintf("%s becomes a reader of %s", client, key)
	case sim.Stays:
		return fmt.Sprintf("%s stays what it was to %s: %s", client, key, failures[e.Failure])
	case sim.Renews:
		return fmt.Sprintf("%s has renewed %s until %s", client, key, seconds(e.Until))
	case sim.Reckons:
		return fmt.Sprintf("%s's clock changes its rate: it believes until %s", client, seconds(e.Until))
	case sim.Misses:
		return fmt.Sprintf("%s finds too few stores to renew %s", client, key)
	case sim.Retries:
		return fmt.Sprintf("%s does not get %s: %s; it tries again", client, key, failures[e.Failure])
	case sim.Fails:
		return fmt.Sprintf("%s gives up on %s: %s (lease %d)", client, key, failures[e.Failure], e.Lease)
	case sim.Loses:
		return fmt.Sprintf("%s knows that it has lost %s: %s (lease %d)", client, key, sim.ReasonName(e.Reason), e.Lease)
	case sim.GivesBack:
		return fmt.Sprintf("%s gives %s back (lease %d)", client, key, e.Lease)
	case sim.IsFree:
		return fmt.Sprintf("every store has heard that %s gave %s back, or failed once", client, key)
	case sim.FaultOn:
		return "FAULT: " + faultText(w.trace, &w.trace.Plan.Faults[e.Fault])
	case sim.FaultOff:
		return "over: " + faultText(w.trace, &w.trace.Plan.Faults[e.Fault])
	case sim.Refills:
		return fmt.Sprintf("store %s leaves quarantine, seen to by %s", store, client)
	case sim.Closes:
		return client + " closes its locker"
	case sim.Hears:
		return fmt.Sprintf("%s hears from %s about %s: %s", client, store, key, sim.WakeName(e.Wake))
	case sim.Calms:
		return "the end of all faults"
	case sim.Breaks:
		v := w.violations[e.Violation]
		return "BROKEN: " + v.Checker.String() + ": " + v.Text
	}
	return e.What.String()
}

func (w *words) message(e *sim.Event, client, store string) string {
	what := w.verbs[e.Msg]
	switch e.What {
	case sim.Sent:
		detail := ""
		switch {
		case e.Verb == core.Acquire && e.Kind == core.New:
			detail = fmt.Sprintf(", attempt %d", e.Attempt)
		case e.Verb == core.Release:
			detail = fmt.Sprintf(", attempts up to %d", e.Attempt)
		}
		if e.Floor > 0 {
			detail += ", token at least " + w.token(e.Floor)
		}
		return fmt.Sprintf("%s asks %s to %s%s", client, store, what, detail)
	case sim.Lost:
		if e.Answer {
			return fmt.Sprintf("%s's answer to %s's %s is lost", store, client, what)
		}
		return fmt.Sprintf("%s's %s to %s is lost", client, what, store)
	case sim.Carried:
		until := ""
		if e.Until > 0 {
			until = ", until " + seconds(e.Until)
		}
		return fmt.Sprintf("%s carries out %s's %s: %s%s", store, client, what, w.outcome(e), until)
	case sim.TimedOut:
		return fmt.Sprintf("%s no longer waits for %s's answer to its %s: it may have been done", client, store, what)
	}
	late := ""
	if e.Late {
		late = ", and comes too late"
	}
	return fmt.Sprintf("%s's answer to %s's %s arrives: %s%s", store, client, what, w.outcome(e), late)
}

func (w *words) write(e *sim.Event, client string) string {
	token := w.token(e.Token)
	switch {
	case e.What == sim.Writes:
		return fmt.Sprintf("%s writes under token %s", client, token)
	case e.What == sim.WriteFails:
		return fmt.Sprintf("the fence refuses %s's write under token %s: it has seen a higher one", client, token)
	case e.Fenced:
		return fmt.Sprintf("the fence lets %s's write under token %s through", client, token)
	}
	return fmt.Sprintf("a resource without a fence takes %s's write", client)
}

// outcome says what a store answered.
func (w *words) outcome(e *sim.Event) string {
	text := outcomes[e.Outcome]
	if e.Outcome == core.Granted && e.Token > 0 {
		text += ", token " + w.token(e.Token)
	}
	return text
}

var outcomes = [...]string{
	"not asked", "granted", "held by another", "no vote of this owner", "ready", "an error, so unknown",
	"nobody listens, so not sent", "in quarantine, so no vote", "it serves another set", "it is another member's server",
}

var failures = [...]string{
	"no failure", "another holds it", "too few stores answer", "a store serves another set", "won too late", "the caller gave up",
}

// faultText names a fault and whom it befalls, in words.
func faultText(t *sim.Trace, f *sim.Fault) string {
	var stores, clients []string
	for i := range core.MaxMembers {
		if f.Stores.Has(i) {
			stores = append(stores, sim.StoreName(i))
		}
	}
	for _, c := range f.Clients {
		clients = append(clients, strings.TrimPrefix(t.Who(c), "client "))
	}
	who := "all clients"
	switch {
	case len(clients) > 0 && t.Names != nil:
		who = strings.Join(clients, " and ")
	case len(clients) > 0:
		who = plural("client", clients)
	}
	lasting := ""
	if f.For > 0 {
		lasting = " for " + seconds(f.For)
	}
	return fmt.Sprintf(faultTexts[f.Kind], who, plural("store", stores), f.Amount, float64(f.Rate)/10_000, lasting)
}

func plural(what string, names []string) string {
	if len(names) > 1 {
		what += "s"
	}
	return what + " " + strings.Join(names, " ")
}

// The texts have the clients, the stores, the amount, the percentage, and how
// long it lasts.
var faultTexts = [sim.FaultKinds]string{
	sim.Partition:      "%[1]s and %[2]s cannot reach each other%[5]s",
	sim.PartitionAsk:   "requests from %[1]s to %[2]s are lost%[5]s",
	sim.PartitionReply: "answers from %[2]s to %[1]s are lost%[5]s",
	sim.Clog:           "messages between %[1]s and %[2]s held up%[5]s",
	sim.Slow:           "answers of %[2]s %[3]v late%[5]s",
	sim.Hang:           "%[2]s hanging%[5]s",
	sim.Full:           "%[2]s failing every request%[5]s",
	sim.Deny:           "%[2]s refusing every vote%[5]s",
	sim.Crash:          "%[2]s down%[5]s, then back with everything",
	sim.Restart:        "%[2]s down%[5]s, then back, perhaps without the last moments",
	sim.Forget:         "%[2]s down%[5]s, then back empty",
	sim.Flush:          "%[2]s emptied while running%.0[5]s",
	sim.RollBack:       "%[2]s down%[5]s, then back as %[3]v before",
	sim.ClockStep:      "the clock of %[2]s jumps by %[3]v%.0[5]s",
	sim.ClockRate:      "the clock of %[2]s runs %[4]g %% fast%[5]s",
	sim.ClockFreeze:    "the clock of %[2]s stands still%[5]s",
	sim.Pause:          "%[1]s stopped%[5]s, its clock going on",
	sim.Kill:           "%[1]s dead%[5]s, then started again",
	sim.Drift:          "the clock of %[1]s runs %[4]g %% fast%[5]s",
	sim.Doze:           "%[1]s asleep%[5]s, and its clock too",
	sim.Lossy:          "%[4]g %% of messages between %[1]s and %[2]s lost, as many doubled%[5]s",
	sim.Echo:           "requests from %[1]s to %[2]s delivered again %[3]v later%[5]s",
	sim.Drop:           "somebody deletes the votes of k0 on %[2]s%.0[5]s",
	sim.Evict:          "all that %[2]s knows of k0 is deleted%.0[5]s",
	sim.ClockLeap:      "the clock of %[2]s jumps by %[3]v and back unseen%.0[5]s",
	sim.Twins:          "%[2]s lead to one server%[5]s",
	sim.Split:          "%[2]s two servers, %[1]s at the second%[5]s",
}

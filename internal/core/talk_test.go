package core_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// talk interprets the commands of a conversation:
//
//	lease [stores=3] [ttl=10s] [order=first|all] [renew=3s] ...   a new lease
//	refill [stores=3]                                             store a is to leave quarantine
//	start, park, admit, woken, release, shut, extend 30s, cancel [wait|closed], promote, demote, desist
//	resume 3 7, leave                                             attempt 3 with token 7
//	pass 500ms                                                    time, waking the machine when it is due
//	a granted 5                                                   the answer to the call in flight to store a
//	a contended [clean] [by=label]                                likewise
//	a granted 5 readers=2                                         likewise
//	a step 5 [in=q1] [over|left=30s]                              likewise, to read step
//	state                                                         how the lease stands
type talk struct {
	lease  *core.Lease
	refill *core.Refill
	now    clock.Instant
	seq    map[int]uint32 // of the call in flight, by store
	out    strings.Builder
	serial uint32
}

func (w *talk) said() string {
	defer w.out.Reset()
	return w.out.String()
}

func (w *talk) printf(format string, args ...any) { fmt.Fprintf(&w.out, format+"\n", args...) }

func (w *talk) command(words []string) error {
	verb, rest := words[0], words[1:]
	if len(verb) == 1 {
		return w.answer(int(verb[0]-'a'), rest)
	}
	l := w.lease
	switch verb {
	case "lease", "refill":
		return w.begin(verb, rest)
	case "start":
		if w.refill != nil {
			w.refill.Start(w.now)
		} else {
			l.Start(w.now)
		}
	case "pass":
		d, err := time.ParseDuration(rest[0])
		if err != nil {
			return err
		}
		w.pass(w.now.Add(d))
	case "extend":
		d, err := time.ParseDuration(rest[0])
		if err != nil {
			return err
		}
		w.serial++
		l.Extend(w.now, w.serial, d)
	case "release":
		l.Release(w.now)
	case "promote":
		w.serial++
		l.Promote(w.now, w.serial)
	case "demote":
		w.serial++
		l.Demote(w.now, w.serial)
	case "resume":
		attempt, _ := strconv.ParseUint(rest[0], 10, 32)
		token, err := strconv.ParseInt(rest[1], 10, 64)
		if err != nil {
			return err
		}
		l.Resume(w.now, uint32(attempt), token)
	case "leave":
		l.Leave(w.now)
	case "desist":
		l.Desist(w.now, w.serial)
	case "woken":
		l.Woken(w.now, 0, core.Wake{Kind: core.WakeChanged})
	case "park":
		l.Park(w.now)
	case "admit":
		l.Admit(w.now)
	case "shut":
		l.Shut(w.now)
	case "cancel":
		l.Cancel(w.now, map[string]core.End{"": core.EndCancelled, "closed": core.EndClosed}[strings.Join(rest, "")])
	case "state":
		w.state()
	default:
		return fmt.Errorf("no such command")
	}
	w.drain("")
	return nil
}

func (w *talk) begin(what string, words []string) error {
	*w = talk{seq: map[int]uint32{}}
	n := 3
	c := core.LeaseConfig{Wait: -1, BackoffMin: 10 * time.Millisecond, BackoffMax: time.Second, Seed: 1}
	c.Request = core.Request{Key: "k", TTL: 10 * time.Second, MaxTTL: time.Minute, Set: 1, Owner: core.Owner{ID: core.ID{1}}}
	c.DriftPPM, c.DriftFixed, c.ReleaseLimit = 10_000, 2*time.Millisecond, 5*time.Second
	times := map[string]*time.Duration{
		"ttl": &c.Request.TTL, "wait": &c.Wait, "renew": &c.RenewEvery, "expiring": &c.Expiring, "maxhold": &c.MaxHold, "minhold": &c.MinHold, "limit": &c.CallLimit,
	}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		var err error
		switch {
		case times[name] != nil:
			*times[name], err = time.ParseDuration(value)
		case name == "stores":
			n, err = strconv.Atoi(value)
		case name == "order":
			c.Request.Order = map[string]core.Order{"first": core.FirstThenRest, "all": core.AllAtOnce}[value]
		case name == "shared":
			c.Request.Mode = core.Shared
		case name == "watch":
			c.Watch = true
		case name == "once":
			c.Once = true
		case name == "failonoutage":
			c.FailOnOutage = true
		case name == "doubles":
			c.Doubles = core.Full(n)
		default:
			err = fmt.Errorf("no such setting: %s", name)
		}
		if err != nil {
			return err
		}
	}
	c.Rule, c.Within = core.Majority(n), c.Request.TTL
	c.Ask = inOrder(n)
	if c.CallLimit == 0 {
		c.CallLimit = min(c.Request.TTL/time.Duration(n+1), time.Second)
	}
	if what == "lease" {
		w.lease = core.NewLease(c)
	} else {
		w.refill = core.NewRefill(core.RefillConfig{Rule: c.Rule, Store: 0, Request: c.Request, CallLimit: c.CallLimit})
	}
	return nil
}

// machine is what both have in common.
func (w *talk) machine() interface {
	Calls() []core.Call
	Answer(clock.Instant, int, uint32, core.Answer)
	Wake(clock.Instant)
	Next() clock.Instant
} {
	if w.refill != nil {
		return w.refill
	}
	return w.lease
}

func (w *talk) pass(until clock.Instant) {
	m := w.machine()
	for range 1000 {
		if m.Next() > until {
			break
		}
		w.now = max(w.now, m.Next())
		m.Wake(w.now)
		w.drain(fmt.Sprintf("%v: ", time.Duration(w.now)))
	}
	w.now = until
}

func (w *talk) answer(store int, words []string) error {
	seq, ok := w.seq[store]
	if !ok {
		return fmt.Errorf("no call to this store is in flight")
	}
	delete(w.seq, store)
	a := core.Answer{}
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		n, err := strconv.ParseInt(word, 10, 64)
		switch {
		case err == nil:
			a.Token, a.Step.Step = n, n
		case name == "clean":
			a.Clean = true
		case name == "forced":
			a.Forced = true
		case name == "readers":
			a.Readers, _ = strconv.Atoi(value)
		case name == "by":
			a.Label = value
		case name == "in":
			a.Step.Quarantine = value
		case name == "over":
			a.Step.Over = true
		case name == "left":
			a.Left, _ = time.ParseDuration(value)
		default:
			o, ok := map[string]core.Outcome{
				"granted": core.Granted, "contended": core.Contended, "not-held": core.NotHeld, "unknown": core.Unknown, "raised": core.Granted,
				"undelivered": core.Undelivered, "quarantined": core.Quarantined, "mismatch": core.Mismatch, "step": core.Granted, "released": core.Granted,
			}[name]
			if !ok {
				return fmt.Errorf("no such answer: %s", name)
			}
			a.Outcome = o
		}
	}
	w.machine().Answer(w.now, store, seq, a)
	w.drain("")
	return nil
}

// drain prints what the machine sends and tells.
func (w *talk) drain(at string) {
	for _, c := range w.machine().Calls() {
		if _, twice := w.seq[c.Store]; twice {
			w.printf("BUG: a second call to %c", 'a'+c.Store)
		}
		w.seq[c.Store] = c.Seq
		w.printf("%s-> %c: %s", at, 'a'+c.Store, describe(&c.Req))
	}
	if w.lease == nil {
		w.printf("%s%s", at, refillStages[w.refill.Stage()])
		return
	}
	for _, n := range w.lease.Notices() {
		w.printf("%s%s", at, w.notice(n))
	}
}

var refillStages = [...]string{"checking", "resting", "reading", "raising", "done"}

func describe(r *core.Request) string {
	text := fmt.Sprintf("%v attempt %d", r.Verb, r.Owner.Attempt)
	switch {
	case r.Verb == core.ReadStep:
		return "read step"
	case r.Verb == core.Raise:
		text = fmt.Sprintf("raise %s above step %d", r.Raise.Quarantine, r.Raise.Step)
		if r.Raise.Alone {
			text += ", alone"
		}
		return text
	case r.Verb == core.Release && r.Entomb:
		return text + " and entomb"
	case r.Verb == core.Release:
		return text
	case r.Kind == core.Repair:
		text = fmt.Sprintf("repair attempt %d with token %d", r.Owner.Attempt, r.Floor)
	case r.Kind == core.Convert:
		text = fmt.Sprintf("convert to %v, attempt %d, floor %d", r.Mode, r.Owner.Attempt, r.Floor)
	case r.Floor > 0:
		text += fmt.Sprintf(", floor %d", r.Floor)
	}
	return fmt.Sprintf("%s, for %v, within %v", text, r.TTL, r.Limit)
}

func (w *talk) notice(n core.Notice) string {
	failure := [...]string{"", "held", "no quorum", "mismatch", "expired", "abandoned"}[n.Failure]
	switch n.Kind {
	case core.NoticeAcquired:
		return fmt.Sprintf("ACQUIRED token %d, %v left", w.lease.Quorum().Token(), w.lease.Until().Sub(w.now))
	case core.NoticeAttempt:
		return "attempt failed: " + failure
	case core.NoticeFailed:
		return strings.TrimSpace("FAILED: " + failure + [...]string{"", ", cancelled", ", wait is over", ", closed"}[n.End])
	case core.NoticeStill:
		return "still waiting: " + failure
	case core.NoticeRenewed:
		return fmt.Sprintf("renewed, %v left", w.lease.Until().Sub(w.now))
	case core.NoticeRenewFailed:
		return "renewal failed"
	case core.NoticeExtended:
		return fmt.Sprintf("extension %d: %s", n.Serial, map[bool]string{true: "ok", false: "too few stores"}[n.OK])
	case core.NoticeChanged:
		if n.OK {
			return fmt.Sprintf("CHANGED to %v, token %d, %v left", w.lease.Mode(), w.lease.Quorum().Token(), w.lease.Until().Sub(w.now))
		}
		return strings.TrimSpace("not changed: " + failure)
	case core.NoticeKept:
		return "kept back"
	case core.NoticeExpiring:
		return "expiring"
	case core.NoticeWatch:
		return "to be watched"
	case core.NoticeLost:
		return "LOST: " + [...]string{"", "expired", "taken over", "quorum lost", "max hold", "forced", "closed"}[n.Reason]
	default:
		return "RELEASED: " + map[bool]string{true: "a quorum answered", false: "too few stores answered"}[n.OK]
	}
}

func (w *talk) state() {
	stage := [...]string{"waiting", "trying", "holding", "ending", "ended", "gone", "returned", "resuming"}[w.lease.Stage()]
	votes := ""
	for i := range core.MaxMembers {
		if w.lease.Quorum().Votes().Has(i) {
			votes += string(rune('a' + i))
		}
	}
	left := max(w.lease.Until(), w.now).Sub(w.now)
	if w.lease.Mode() == core.Shared {
		stage += " as a reader"
	}
	w.printf("%s, votes %s, %v left, at %v", stage, votes, left, time.Duration(w.now))
}

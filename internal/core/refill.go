package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// RefillConfig is what a Refill is told once.
type RefillConfig struct {
	Rule      *Rule // of the composite that the store is a direct member of
	Store     int   // the one in quarantine
	Request   Request
	CallLimit time.Duration
	Bugs      Bugs
}

// RefillStage is where a Refill stands.
type RefillStage uint8

// The stages.
const (
	RefillChecking RefillStage = iota // asking the store itself
	RefillResting                     // its time is not over, or a silent store could still make a quorum
	RefillReading                     // asking the others
	RefillRaising
	RefillDone
)

// refillPause is how soon a Refill that could not go on tries again.
const refillPause = time.Second

// Refill carries one store out of quarantine: after that store has answered
// that its time is over, the steps of a quorum of voting stores without it are
// read, and the store is raised above them, bound to that very quarantine. Any
// client that meets the store may do it; several at once do no harm.
//
// The order matters: a quorum read before the quarantine's time is over may
// miss a token that is confirmed with the store's old votes afterwards.
type Refill struct {
	cfg        RefillConfig
	stage      RefillStage
	out        []Call
	seq        uint32
	wakeAt     clock.Instant
	quarantine string
	heard      Set // answered, or given up on, in this stage
	voting     Set // answered that they vote
	spoke      Set // gave a reading
	step       int64
	alone      bool
	stuck      bool
	inside     bool
}

// NewRefill returns a Refill that has asked nothing yet.
func NewRefill(cfg RefillConfig) *Refill { return &Refill{cfg: cfg, wakeAt: Never} }

// Stage returns where the refill stands.
func (f *Refill) Stage() RefillStage { return f.stage }

// Alone reports whether no quorum of other stores could vouch for the steps,
// so that token order rests on the servers' clocks.
func (f *Refill) Alone() bool { return f.alone }

// Stuck reports whether the store stays out because a silent store could still
// complete a quorum.
func (f *Refill) Stuck() bool { return f.stuck }

// Quarantined reports whether the store said that it is in quarantine.
func (f *Refill) Quarantined() bool { return f.inside }

// Calls returns what to send now, and forgets it.
func (f *Refill) Calls() []Call { return f.AppendCalls(nil) }

// Next returns when Wake is due, or Never.
func (f *Refill) Next() clock.Instant { return f.wakeAt }

// Start asks the store how it stands.
func (f *Refill) Start(now clock.Instant) {
	f.await(now, RefillChecking)
	f.voting, f.spoke, f.step = 0, 0, 0
	f.send(f.cfg.Store, ReadStep, RaiseOrder{})
}

// Wake takes the passing of time.
func (f *Refill) Wake(now clock.Instant) {
	if now < f.wakeAt {
		return
	}
	switch f.stage {
	case RefillResting:
		f.Start(now)
	case RefillReading: // who has not answered by now is silent
		f.heard = Full(f.cfg.Rule.N())
		f.decide(now)
	case RefillChecking:
		if !f.inside {
			f.end() // it is silent, and nobody said that it is in quarantine
			return
		}
		f.rest(now, refillPause)
	case RefillRaising:
		f.rest(now, refillPause)
	}
}

// Answer takes the end of a call.
func (f *Refill) Answer(now clock.Instant, store int, seq uint32, a Answer) {
	if seq != f.seq || f.heard.Has(store) {
		return
	}
	f.heard = f.heard.With(store)
	switch f.stage {
	case RefillChecking:
		f.checked(now, a)
	case RefillReading:
		f.read(now, store, a)
	case RefillRaising:
		if a.Outcome == Granted {
			f.end()
		} else {
			f.rest(now, refillPause) // another client may have been quicker: look again
		}
	}
}

func (f *Refill) checked(now clock.Instant, a Answer) {
	if a.Outcome == Granted {
		f.inside = a.Step.Quarantine != ""
	}
	switch {
	case a.Outcome != Granted && !f.inside:
		f.end() // it is silent, and nobody said that it is in quarantine
	case a.Outcome != Granted:
		f.rest(now, refillPause)
	case a.Step.Quarantine == "":
		f.end()
	case !a.Step.Over && !f.cfg.Bugs.has(BugEarlyStepRead):
		f.rest(now, max(a.Left, time.Millisecond))
	default:
		f.quarantine = a.Step.Quarantine
		f.step = a.Step.Step
		f.await(now, RefillReading)
		f.heard = f.heard.With(f.cfg.Store)
		for i := range f.cfg.Rule.N() {
			if i != f.cfg.Store {
				f.send(i, ReadStep, RaiseOrder{})
			}
		}
		f.decide(now)
	}
}

func (f *Refill) read(now clock.Instant, store int, a Answer) {
	if a.Outcome == Granted {
		f.spoke = f.spoke.With(store)
		f.step = max(f.step, a.Step.Step)
		if a.Step.Quarantine == "" {
			f.voting = f.voting.With(store)
		}
	}
	f.decide(now)
}

// decide raises the store once a quorum has been read, or once it is certain
// that there is none to be had.
func (f *Refill) decide(now clock.Instant) {
	rule := f.cfg.Rule
	all := f.heard == Full(rule.N())
	silent := Full(rule.N()).Without(f.cfg.Store) &^ f.spoke
	order := RaiseOrder{Quarantine: f.quarantine, Step: f.step}
	switch {
	case rule.Met(f.voting):
	case !all:
		return
	case rule.Met(f.voting | silent):
		f.stuck = true
		f.rest(now, refillPause)
		return
	default:
		order.Alone = true
	}
	f.alone, f.stuck = order.Alone, false
	f.await(now, RefillRaising)
	f.send(f.cfg.Store, Raise, order)
}

func (f *Refill) end() { f.stage, f.wakeAt = RefillDone, Never }

// await begins a stage whose answers are waited for no longer than a call may
// take. Answers to an earlier stage are void.
func (f *Refill) await(now clock.Instant, stage RefillStage) {
	f.stage, f.heard, f.wakeAt = stage, 0, now.Add(f.cfg.CallLimit)
	f.seq++
}

func (f *Refill) rest(now clock.Instant, d time.Duration) {
	f.stage, f.wakeAt = RefillResting, now.Add(d)
}

func (f *Refill) send(store int, verb Verb, order RaiseOrder) {
	r := f.cfg.Request
	r.Verb, r.Limit, r.Raise = verb, f.cfg.CallLimit, order
	f.out = append(f.out, Call{Store: store, Seq: f.seq, Req: r})
}

package core

import (
	"time"

	"github.com/quorumlock/quorum/clock"
)

// SetChangeConfig is what a SetChange is told once. Stores are numbered over both
// sets together.
type SetChangeConfig struct {
	Old, New             *Rule // over all stores; one that is not of the set counts for nothing
	OldStores, NewStores Set
	From, Joint, To      uint64      // fingerprints
	Until                ChangeStage // where to stop
	// Request carries the longer MaxTTL of the two sets.
	Request   Request
	CallLimit time.Duration
	Bugs      Bugs
}

// ChangeStage is how far a store, or all of them together, has come on the way
// from one set to another. It only rises.
type ChangeStage uint8

// The stages, by what a store serves.
const (
	ChangeNone    ChangeStage = iota // nothing: it was never asked, or forgot
	ChangeOld                        // the old set
	ChangeJoining                    // the old set and both together
	ChangeJoined                     // both together
	ChangeOpened                     // both together and the new set
	ChangeDone                       // the new set
	changeForeign                    // a set of neither
)

// setStep is what a SetChange is about.
type setStep uint8

const (
	changeSurvey  setStep = iota // what does each store serve?
	changeMove                   // stores are told what to serve
	changeRest                   // for a while
	changeRead                   // the steps of old and new
	changeRaise                  // new stores are raised above the old ones' steps
	changeSettled                // at its end
)

// changePause is how soon a SetChange that could not go on tries again.
const changePause = time.Second

// SetChange moves stores from an old set to a new one while locks are held, by way
// of a joint set whose quorums hold a quorum of either. It keeps nothing that a
// crash could lose: what the stores serve says how far it came, so that another
// SetChange of the same two sets goes on where the last one stopped, and several
// at once do no harm.
//
// Why no two holders: the old set and the joint one share stores in every
// quorum, and so do the joint one and the new. The old and the new need not,
// and so must never be alive together: no store serves the new set before a
// quorum of the old stopped serving that, longer ago than any lease lasts.
//
// Why tokens go on growing: what was confirmed under the old set was confirmed
// by a store of every old quorum before that stopped serving it. A quorum of
// the new is raised above the steps that an old quorum says after it stopped.
// What was confirmed by the joint set is known in every new quorum.
type SetChange struct {
	cfg    SetChangeConfig
	step   setStep
	out    []Call
	seq    uint32
	wakeAt clock.Instant
	asked  Set
	heard  Set
	moved  bool // a store of this round did what it was told

	at     [MaxMembers]ChangeStage // what answered the last survey
	silent Set                     // who did not
	stage  ChangeStage
	since  clock.Instant // when a quorum of both was first seen to stand at joined
	stands bool          // since counts

	highest int64 // step of the old stores that were read
	readers Set
	voting  Set
	over    [MaxMembers]string // quarantines that were seen to be over, before highest was read
	raised  Set
	ready   bool // the new set may be served
	failed  bool
}

// NewSetChange returns a SetChange that has asked nothing yet.
func NewSetChange(cfg SetChangeConfig) *SetChange { return &SetChange{cfg: cfg, wakeAt: Never} }

// Settled reports whether the change came to its end.
func (c *SetChange) Settled() bool { return c.step == changeSettled }

// Failed reports that a store serves a set that is none of this change's, so
// that nothing was moved any more.
func (c *SetChange) Failed() bool { return c.failed }

// Stage returns how far a quorum of each set has come, as last seen.
func (c *SetChange) Stage() ChangeStage { return c.stage }

// At returns how far a store has come, as last seen; known is false while it
// does not answer, foreign true where it serves another set.
func (c *SetChange) At(store int) (stage ChangeStage, known, foreign bool) {
	stage = c.at[store]
	return stage, !c.silent.Has(store), stage == changeForeign
}

// Behind returns the stores of the new set that did not answer, and do not
// serve it before the change is made again.
func (c *SetChange) Behind() Set { return c.silent & c.cfg.NewStores }

// Left returns how long leases of the old set may last still, 0 when that is
// not what the change waits for.
func (c *SetChange) Left(now clock.Instant) time.Duration {
	if !c.stands || c.ready || c.step == changeSettled {
		return 0
	}
	return max(c.since.Add(c.cfg.Request.MaxTTL).Sub(now), 0)
}

// Calls returns what to send now, and forgets it.
func (c *SetChange) Calls() []Call { return c.AppendCalls(nil) }

// AppendCalls is Calls into a slice of the caller's.
func (c *SetChange) AppendCalls(calls []Call) []Call {
	calls = append(calls, c.out...)
	c.out = c.out[:0]
	return calls
}

// Next returns when Wake is due, or Never.
func (c *SetChange) Next() clock.Instant { return c.wakeAt }

// Start asks the stores what they serve.
func (c *SetChange) Start(now clock.Instant) { c.survey(now) }

func (c *SetChange) all() Set { return c.cfg.OldStores | c.cfg.NewStores }

func (c *SetChange) survey(now clock.Instant) {
	c.await(now, changeSurvey, c.all())
	c.silent = c.all()
	for i := range c.cfg.Old.N() {
		c.send(i, ReadSets, func(*Request) {})
	}
}

// Wake takes the passing of time. Who has not answered by now is silent.
func (c *SetChange) Wake(now clock.Instant) {
	switch {
	case now < c.wakeAt || c.step == changeSettled:
	case c.step == changeRest:
		c.survey(now)
	default:
		c.heard = c.asked
		c.next(now)
	}
}

// Answer takes the end of a call.
func (c *SetChange) Answer(now clock.Instant, store int, seq uint32, a Answer) {
	if seq != c.seq || !c.asked.Has(store) || c.heard.Has(store) || c.step == changeSettled {
		return
	}
	c.heard = c.heard.With(store)
	if a.Outcome == Granted {
		switch c.step {
		case changeSurvey:
			c.silent = c.silent.Without(store)
			c.at[store] = c.place(a.Sets)
		case changeMove:
			c.moved = true
		case changeRead:
			c.read(store, a.Step)
		case changeRaise:
			c.raised, c.moved = c.raised.With(store), true
		}
	}
	if c.heard == c.asked {
		c.next(now)
	}
}

// next goes on when all were heard or given up on.
func (c *SetChange) next(now clock.Instant) {
	switch {
	case c.step == changeSurvey:
		c.plan(now)
	case c.step == changeRead:
		c.raise(now)
	case c.moved:
		c.survey(now)
	default:
		c.rest(now, changePause)
	}
}

// await begins a step whose answers are waited for no longer than a call may
// take. Answers to an earlier step are void.
func (c *SetChange) await(now clock.Instant, step setStep, asked Set) {
	c.step, c.asked, c.heard, c.moved = step, asked, 0, false
	c.wakeAt = now.Add(c.cfg.CallLimit)
	c.seq++
}

func (c *SetChange) rest(now clock.Instant, d time.Duration) {
	c.step, c.wakeAt = changeRest, now.Add(d)
}

func (c *SetChange) end(failed bool) {
	c.step, c.wakeAt, c.failed = changeSettled, Never, failed
}

func (c *SetChange) send(store int, verb Verb, fill func(*Request)) {
	r := c.cfg.Request
	r.Verb, r.Limit, r.Set = verb, c.cfg.CallLimit, c.cfg.Joint
	if c.at[store] == ChangeDone {
		r.Set = c.cfg.To
	}
	fill(&r)
	c.out = append(c.out, Call{Store: store, Seq: c.seq, Req: r})
}

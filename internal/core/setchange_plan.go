package core

import "github.com/quorumlock/quorum/clock"

// serves is what a store at a stage serves.
func (c *SetChange) serves(s ChangeStage) Sets {
	switch s {
	case ChangeOld:
		return SetsOf(c.cfg.From)
	case ChangeJoining:
		return SetsOf(c.cfg.From, c.cfg.Joint)
	case ChangeJoined:
		return SetsOf(c.cfg.Joint)
	case ChangeOpened:
		return SetsOf(c.cfg.Joint, c.cfg.To)
	case ChangeDone:
		return SetsOf(c.cfg.To)
	}
	return Sets{}
}

// place is the stage of a store that serves sets.
func (c *SetChange) place(sets Sets) ChangeStage {
	for s := ChangeNone; s <= ChangeDone; s++ {
		if c.serves(s) == sets {
			return s
		}
	}
	return changeForeign
}

// where returns the stores that answered and have come between two stages.
func (c *SetChange) where(from, to ChangeStage) Set {
	var set Set
	for i := range c.cfg.Old.N() {
		if s := c.at[i]; !c.silent.Has(i) && s >= from && s <= to {
			set = set.With(i)
		}
	}
	return set
}

// both reports whether a set holds a quorum of the old and one of the new.
func (c *SetChange) both(s Set) bool { return c.cfg.Old.Met(s) && c.cfg.New.Met(s) }

// plan decides what is next from what each store serves.
func (c *SetChange) plan(now clock.Instant) {
	if c.where(changeForeign, changeForeign) != 0 {
		c.end(true)
		return
	}
	// The new set was opened by a SetChange that had waited and raised, if a
	// quorum of the new serves it beside the joint one, which only such a change
	// brings about; or serves it anyhow, where a quorum of the old has left the
	// old. One store is no evidence: a client that came too early may have made
	// a fresh store serve the new set, and a store may come back from another
	// change of the same two sets. A quorum is, since no store goes back.
	open, past := c.where(ChangeOpened, ChangeDone), c.where(ChangeJoined, ChangeDone)
	opened := c.cfg.New.Met(c.where(ChangeOpened, ChangeOpened)) || c.cfg.New.Met(open) && c.cfg.Old.Met(past)
	switch {
	case opened:
		c.ready = true
	case c.ready:
	case c.cfg.New.Met(open|c.silent) && c.cfg.Old.Met(past|c.silent):
		c.rest(now, changePause) // those that are silent would tell
		return
	}
	c.judge(now)
	switch until := c.cfg.Until; {
	case !c.ready && (c.stage < ChangeJoining || until <= ChangeJoining && c.stage == ChangeJoining):
		c.advance(now, ChangeJoining)
	case !c.ready && (c.stage < ChangeJoined || until <= ChangeJoined):
		c.advance(now, ChangeJoined)
	case !c.ready:
		c.prepare(now)
	case c.stage < ChangeOpened || until <= ChangeOpened && c.stage == ChangeOpened:
		c.advance(now, ChangeOpened)
	default:
		c.advance(now, ChangeDone)
	}
}

// judge finds the stage that a quorum of each set has reached, and whether the
// wait for old leases has begun. Once the new set may be served only its own
// quorum counts: the old stores may be switched off.
func (c *SetChange) judge(now clock.Instant) {
	c.stage = ChangeNone
	for s := ChangeOld; s <= ChangeDone; s++ {
		stand := c.where(s, ChangeDone)
		if c.both(stand) || c.ready && c.cfg.New.Met(stand) {
			c.stage = s
		}
	}
	// A store that serves the new set too early does not stand at joined.
	if !c.stands && c.both(c.where(ChangeJoined, ChangeOpened)) {
		c.stands, c.since = true, now
	}
}

// advance moves every store that has not come to a stage yet, and ends the
// change if there is none and the stage is the last that is wanted.
func (c *SetChange) advance(now clock.Instant, to ChangeStage) {
	type move struct {
		store int
		ServeOrder
	}
	var moves []move
	var asked Set
	for i := range c.cfg.Old.N() {
		goal := to
		if to == ChangeJoining && !c.cfg.OldStores.Has(i) {
			goal = ChangeJoined // no client of the old set asks it
		}
		from := c.at[i]
		early := from == ChangeDone && !c.ready
		if c.silent.Has(i) || from >= goal && !early {
			continue
		}
		if early {
			goal = ChangeJoined // whatever it was told to serve too early; never the old again
		}
		moves, asked = append(moves, move{i, ServeOrder{c.serves(from), c.serves(goal)}}), asked.With(i)
	}
	switch {
	case len(moves) > 0:
		c.await(now, changeMove, asked)
		for _, m := range moves {
			c.send(m.store, Serve, func(r *Request) { r.Serve = &m.ServeOrder })
		}
	case c.stage < to:
		c.rest(now, changePause)
	default:
		c.end(false)
	}
}

// prepare waits until no lease of the old set can be believed any more, and
// then has a quorum of the new raised.
func (c *SetChange) prepare(now clock.Instant) {
	early := c.where(ChangeDone, ChangeDone) != 0
	lagging := c.where(ChangeNone, ChangeJoining) != 0
	until := c.since.Add(c.cfg.Request.MaxTTL)
	switch {
	case early || lagging: // stores that came back, or forgot
		c.advance(now, ChangeJoined)
	case !c.stands:
		c.rest(now, changePause)
	case now < until && !c.cfg.Bugs.has(BugChangeNoWait):
		c.rest(now, until.Sub(now))
	case c.cfg.New.Met(c.raised) || c.cfg.Bugs.has(BugChangeNoRaise):
		c.ready = true
		c.advance(now, ChangeOpened)
	default:
		c.highest, c.readers, c.voting = 0, 0, 0
		asked := c.where(ChangeJoined, ChangeOpened)
		c.await(now, changeRead, asked)
		for i := range c.cfg.Old.N() {
			if asked.Has(i) {
				c.send(i, ReadStep, func(*Request) {})
			}
		}
	}
}

// read notes a store's step. Only one that remembers vouches for the old set's
// steps. One whose quarantine is over is raised too, but not in the round that
// first finds it over: the steps of that round may have been read before, and
// miss what was confirmed with a vote that this store forgot.
func (c *SetChange) read(store int, s StepReading) {
	seen := c.over[store]
	c.over[store] = ""
	switch {
	case s.Quarantine == "":
		c.voting = c.voting.With(store)
		if c.cfg.OldStores.Has(store) {
			c.readers = c.readers.With(store)
			c.highest = max(c.highest, s.Step)
		}
	case s.Over:
		c.over[store] = s.Quarantine
		if seen == s.Quarantine {
			c.voting = c.voting.With(store)
		}
	}
}

// raise lifts the new stores that can be lifted above the steps of an old
// quorum.
func (c *SetChange) raise(now clock.Instant) {
	who := c.voting & c.cfg.NewStores &^ c.raised
	if !c.cfg.Old.Met(c.readers) || who == 0 {
		c.rest(now, changePause)
		return
	}
	c.await(now, changeRaise, who)
	for i := range c.cfg.Old.N() {
		if who.Has(i) {
			c.send(i, Raise, func(r *Request) { r.Raise = RaiseOrder{Quarantine: c.over[i], Step: c.highest} })
		}
	}
}

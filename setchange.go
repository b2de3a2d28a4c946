package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// ChangeStage is how far a store, or a whole set, has come on its way from an
// old set to a new one, by which clients it serves.
type ChangeStage uint8

// The stages.
const (
	ChangeNone    = ChangeStage(core.ChangeNone)    // nobody's yet: it was never asked, or has forgotten
	ChangeOld     = ChangeStage(core.ChangeOld)     // the old set's
	ChangeJoining = ChangeStage(core.ChangeJoining) // the old set's and those in between: let clients move to Between
	ChangeJoined  = ChangeStage(core.ChangeJoined)  // those in between alone
	ChangeOpened  = ChangeStage(core.ChangeOpened)  // those in between and the new set's: let clients move to the new set
	ChangeDone    = ChangeStage(core.ChangeDone)    // the new set's alone
)

// String names the stage in lower case.
func (s ChangeStage) String() string {
	if s > ChangeDone {
		return fmt.Sprintf("stage %d", uint8(s))
	}
	return [...]string{"none", "old", "joining", "joined", "opened", "done"}[s]
}

// ChangeReport says how far a change of stores has come.
type ChangeReport struct {
	Stage  ChangeStage   // that a quorum of both sets has reached; once opened, of the new
	Stores []ChangeStore // those of both sets, by name
}

// ChangeStore is one store's part in a change.
type ChangeStore struct {
	Name     string
	Old, New bool // of which of the two sets it is
	Stage    ChangeStage
	Err      error // why its stage is not known; Stage is then the last that was
}

// Change moves the stores of a lock from one set to another, while locks are
// held. from and to are Lockers as the clients of either set have them; no lock
// is taken with them. It carries the stores to a stage and no further, from
// whatever stage they are in, and returns when they have reached it:
//
//	Change(ctx, from, to, ChangeJoining) // then let every client move to Between(from, to)
//	Change(ctx, from, to, ChangeOpened)  // then let every client move to the new set
//	Change(ctx, from, to, ChangeDone)
//
// A client of a set that a store serves no more is told [ErrMismatch], and a
// lease that such a client still has is lost; so clients that move at the two
// stages above notice nothing. On its way to ChangeOpened it waits until no
// lease of the old set can be believed any more, for the longer MaxTTL of the
// two, and raises the new stores' tokens above the old ones'.
//
// It keeps nothing but what the stores serve. Killed at any moment it is called
// again with the same two sets, by whomever, and goes on; two at once do no
// harm. A quorum of either set must answer. When a store of the new set does
// not, the others go on, and the error names it: call Change again once it is
// back, for until then it refuses the new clients.
//
// The error matches [ErrMismatch] when a store serves a third set,
// [ErrUnsupported] when one cannot change what it serves ([Membership],
// [HighWater]), and [ErrNoQuorum] and ctx's error when too few answered until
// ctx ended. The report is nil only where no store was asked.
//
// Start no client of the new set before ChangeOpened. And when the old set's
// stores are given up, end its clients first or switch the stores off: stores
// that lose their memory are new ones to them.
func Change(ctx context.Context, from, to *Locker, until ChangeStage) (*ChangeReport, error) {
	var c *setChange
	err := alive(ctx) // else no store is asked
	if err == nil {
		c, err = newSetChange(ctx, from, to, until)
	}
	if err != nil {
		return nil, &OpError{Op: "change", reasons: []error{err}}
	}
	c.d.do(c.m.Start)
	select {
	case <-c.done:
	case <-ctx.Done():
	}
	c.d.stop()
	return c.outcome(ctx)
}

// setChange drives one run of a change.
type setChange struct {
	m           *core.SetChange
	d           *driver
	members     []Store
	old, new    core.Set
	observe     func(Event)
	done        chan struct{}
	over        bool
	toldStage   ChangeStage
	toldWaiting bool
}

func newSetChange(ctx context.Context, from, to *Locker, until ChangeStage) (*setChange, error) {
	between, err := Between(from, to)
	if err != nil {
		return nil, err
	}
	set := between.set
	switch {
	case from.print == to.print:
		return nil, fmt.Errorf("%w: Change between two sets that are one", ErrInvalidOption)
	case until < ChangeJoining || until > ChangeDone:
		return nil, fmt.Errorf("%w: Change until %v: it goes to one of joining, joined, opened and done", ErrInvalidOption, until)
	}
	c := &setChange{members: set.members, done: make(chan struct{}), observe: to.def.observe}
	old, oldRule := within(from.set, set)
	new, newRule := within(to.set, set)
	c.old, c.new = old, new
	for _, m := range set.members {
		_, changes := As[Membership](m)
		_, steps := As[HighWater](m)
		if !changes || !steps {
			return nil, fmt.Errorf("%w: store %q cannot change which sets it serves", ErrUnsupported, m.Name())
		}
	}
	c.m = core.NewSetChange(core.SetChangeConfig{
		Old: oldRule, New: newRule, OldStores: old, NewStores: new,
		From: uint64(from.print), Joint: uint64(between.print), To: uint64(to.print),
		Until: core.ChangeStage(until), CallLimit: callLimit(to.def.ttl, 1),
		Request: core.Request{MaxTTL: between.def.maxTTL},
	})
	c.d = newDriver(ctx, c.m, c, &means{set: set, clock: to.def.clock})
	return c, nil
}

// within is where the stores of a set stand in a joint one, and its rule there.
func within(part, whole *CombinedStore) (core.Set, *core.Rule) {
	at := map[string]int{}
	for i, m := range whole.members {
		at[m.Name()] = i
	}
	var stores core.Set
	for _, m := range part.leaves() {
		stores = stores.With(at[m.Name()])
	}
	return stores, core.Tabulate(len(whole.members), func(s core.Set) bool {
		return part.satisfied(func(_ int, m Store) bool { return s.Has(at[m.Name()]) })
	})
}

// settled looks at the machine after each event.
func (c *setChange) settled(now clock.Instant) func() {
	if c.m.Settled() && !c.over {
		c.over = true
		close(c.done)
	}
	stage, left := ChangeStage(c.m.Stage()), c.m.Left(now)
	if c.observe == nil || stage == c.toldStage && (left == 0 || c.toldWaiting) {
		return nil
	}
	c.toldStage, c.toldWaiting = stage, c.toldWaiting || left > 0
	return func() { c.observe(Event{Kind: EventChange, Stage: stage, Left: left}) }
}

// outcome is what the run came to.
func (c *setChange) outcome(ctx context.Context) (*ChangeReport, error) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	report := &ChangeReport{Stage: ChangeStage(c.m.Stage())}
	var silent, behind, foreign []string
	for i, m := range c.members {
		stage, known, foreigner := c.m.At(i)
		s := ChangeStore{Name: m.Name(), Old: c.old.Has(i), New: c.new.Has(i)}
		switch {
		case foreigner:
			s.Err = &RefusedError{Outcome: OutcomeMismatch, Reason: fmt.Sprintf("store %q serves a set that is neither the old nor the new one", m.Name())}
			foreign = append(foreign, fmt.Sprintf("%q", m.Name()))
		case !known:
			s.Stage, s.Err = ChangeStage(stage), c.d.reply(i).err
			if s.Err == nil {
				s.Err = errPending
			}
			silent = append(silent, fmt.Sprintf("%q: %v", m.Name(), s.Err))
			if c.m.Behind().Has(i) {
				behind = append(behind, fmt.Sprintf("%q", m.Name()))
			}
		default:
			s.Stage = ChangeStage(stage)
		}
		report.Stores = append(report.Stores, s)
	}
	var reasons []error
	switch {
	case c.m.Failed():
		reasons = append(reasons, ErrMismatch, fmt.Errorf("%s serves none of the two; nothing more was changed", strings.Join(foreign, ", ")))
	case !c.m.Settled():
		if len(silent) > 0 {
			reasons = append(reasons, ErrNoQuorum)
		}
		reasons = append(reasons, ctx.Err(), fmt.Errorf("stopped at stage %q; call it again to go on", report.Stage))
	case len(behind) > 0:
		reasons = append(reasons, errors.New(strings.Join(behind, ", ")+" did not answer; call it again once it does, until then it refuses the new clients"))
	default:
		return report, nil
	}
	if len(silent) > 0 {
		reasons = append(reasons, errors.New(strings.Join(silent, "; ")))
	}
	return report, &OpError{Op: "change", reasons: reasons}
}

// readSets asks a store which sets it serves.
func readSets(ctx context.Context, s Store, r Request) (core.Answer, []Vote, error) {
	m, ok := As[Membership](s)
	if !ok {
		return core.Answer{Outcome: core.Undelivered}, nil, ErrUnsupported
	}
	prints, err := m.Serves(ctx, r)
	if err == nil && len(prints) > 2 {
		err = fmt.Errorf("store %q serves %d sets", s.Name(), len(prints))
	}
	a := answerOf(Grant{}, err)
	if err == nil {
		raw := make([]uint64, len(prints))
		for i, p := range prints {
			raw[i] = uint64(p)
		}
		a.Sets = core.SetsOf(raw...)
	}
	return a, nil, err
}

// serve tells a store which sets to serve.
func serve(ctx context.Context, s Store, r Request, o *core.ServeOrder) (core.Answer, []Vote, error) {
	m, ok := As[Membership](s)
	if !ok {
		return core.Answer{Outcome: core.Undelivered}, nil, ErrUnsupported
	}
	err := m.Serve(ctx, r, prints(o.From), prints(o.To))
	return answerOf(Grant{}, err), nil, err
}

func prints(s core.Sets) []Fingerprint {
	var out []Fingerprint
	for _, p := range s.Of[:s.N] {
		out = append(out, Fingerprint(p))
	}
	return out
}

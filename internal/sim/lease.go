package sim

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// Request is what a program asks for.
type Request struct {
	Key        int
	Mode       core.Mode
	TTL        time.Duration // 0 is the configuration's
	Wait       time.Duration // 0 is a single attempt, negative is without end
	NoRenew    bool
	MaxHold    time.Duration // 0 is without end
	FailOutage bool          // do not wait for stores to come back
	Force      bool          // take the name from whoever has it
	Order      core.Order
}

// Lease is one acquisition, and the lease that may come of it.
type Lease struct {
	driver
	m       *core.Lease
	serial  int
	id      core.ID
	key     int
	of      *Set
	mode    core.Mode
	heard   func(*Lease, core.Notice)
	ttl     time.Duration
	token   int64
	stage   core.Stage    // before the event under way
	believe clock.Instant // end of belief by the client's clock, as last seen

	believes   bool
	until      time.Duration // true end of belief
	began      time.Duration
	acquired   time.Duration // never before it is
	tenure     tenure        // as a writer, the last
	asked      time.Duration // when the last promotion was
	aboveAny   int64         // highest token of a lease that was held when this one began
	aboveWrite int64         // and of an exclusive one

	askedFrom clock.Instant // the first request of the attempt left
	attempt   uint32
	extended  clock.Instant // the last extension left
	extendTTL time.Duration // and its TTL
	from      time.Duration // what was sent last that belief may rest on
	founded   time.Duration // what belief rests on was sent
	robbed    time.Duration // somebody took a vote by force
	rounds    int
	calls     int
	polls     int      // of them that only keep a place in line
	orphans   core.Set // stores that granted what had been on its way for too long
	above     core.Set // stores that were heard to grant more than the token while it was held
	over      bool     // nothing will be sent any more
	releasing bool     // the program gave it back
	ear       *ear     // where it hears what stores tell
	clean     bool     // by its own knowledge nothing is left anywhere
}

// Acquire begins an acquisition. heard gets what the lease has to tell, as
// news to the program: after it happened, and not while the process is
// stopped. It is given with every kind of notice that core knows.
func (c *Client) Acquire(r Request, heard func(*Lease, core.Notice)) *Lease {
	w := c.w
	if c.closing {
		if heard != nil {
			c.After(0, func() { heard(nil, core.Notice{Kind: core.NoticeFailed, End: core.EndClosed}) })
		}
		return nil
	}
	w.leases++
	w.report.Asked++
	l := &Lease{serial: w.leases, key: r.Key, mode: r.Mode, heard: heard, ttl: r.TTL, began: w.now, acquired: never}
	if l.ttl == 0 {
		l.ttl = w.cfg.TTL
	}
	k := w.keys[r.Key]
	l.of = c.set
	l.aboveAny, l.aboveWrite = k.any, k.written
	cfg := core.LeaseConfig{
		Config: core.Config{
			Rule: l.of.Rule, Ask: core.RankingOf(l.ask(k)...), Within: l.ttl, CallLimit: w.cfg.CallLimit, ReleaseLimit: w.cfg.ReleaseLimit,
			DriftPPM: w.cfg.DriftPPM, DriftFixed: w.cfg.DriftFixed, Bugs: w.cfg.Bugs,
			Request: core.Request{Key: k.text, Mode: r.Mode, Order: r.Order, TTL: l.ttl, MaxTTL: w.cfg.MaxTTL, Set: l.of.Print},
		},
		FailOnOutage: r.FailOutage, Wait: r.Wait, MaxHold: r.MaxHold,
		BackoffMin: w.cfg.BackoffMin, BackoffMax: w.cfg.BackoffMax, Seed: w.choices.Choose(OfWork, 1<<32),
	}
	cfg.RenewEvery = max(min(w.cfg.RenewEvery, l.ttl/2), 0)
	if r.NoRenew {
		cfg.RenewEvery = 0
	}
	if w.cfg.Doubles {
		cfg.Doubles = core.Full(l.of.Rule.N())
	}
	if w.cfg.Mutant != OwnersRepeat {
		binary.BigEndian.PutUint16(l.id[:], uint16(l.serial))
		binary.BigEndian.PutUint64(l.id[8:], uint64(l.serial))
	}
	cfg.Request.Owner.ID = l.id
	if r.Force {
		cfg.Request.Kind = core.Force
	}
	if cfg.Watch = w.cfg.Watches; cfg.Watch && r.Wait != 0 {
		cfg.Request.Wait = core.WaitWatch
		cfg.Queues = w.cfg.Queues && !r.Force
	}
	l.m = core.NewLease(cfg)
	l.believe = -core.Never
	l.driver = driver{c: c, m: l.m, lease: l, members: l.of.Members, timer: never, flights: make([]flight, 0, l.of.Rule.N()), health: &c.health[0]}
	c.leases = append(c.leases, l)
	w.emit(Event{What: Asks, Client: c.id, Store: -1, Lease: l.serial, Key: l.key, Mode: l.mode})
	c.sweep()
	l.learn(c.Now())
	l.joins()
	l.m.Start(c.Now())
	l.settle()
	return l
}

// ask is the order in which the members of the lease's set are asked.
func (l *Lease) ask(k *name) []int {
	if l.of.Members == nil {
		return k.ask
	}
	return askOrder(l.key, len(l.of.Members))
}

// Client returns whose lease it is.
func (l *Lease) Client() *Client { return l.c }

// Serial returns the number of the acquisition.
func (l *Lease) Serial() int { return l.serial }

// Key returns the number of the key.
func (l *Lease) Key() int { return l.key }

// Token returns the fencing token, 0 before the lease is held.
func (l *Lease) Token() int64 { return l.token }

// Remaining returns for how long the client may still believe that it holds.
func (l *Lease) Remaining() time.Duration { return max(l.m.Until().Sub(l.c.Now()), 0) }

// Release gives the lease back; heard gets a NoticeReleased when every store
// has answered or failed once.
func (l *Lease) Release() {
	if l.dead {
		return
	}
	if !l.releasing && l.m.Stage() >= core.Holding && l.m.Stage() != core.Ended && l.m.Stage() != core.Ending {
		l.c.w.checkStray(l)
		l.c.w.emit(Event{What: GivesBack, Client: l.c.id, Store: -1, Lease: l.serial, Key: l.key})
		l.releasing = true
	}
	l.over = false
	if !slices.Contains(l.c.leases, l) {
		l.c.leases = append(l.c.leases, l)
	}
	l.m.Release(l.c.Now())
	l.settle()
}

// Cancel ends the wait, as the end of a context does. A lease that is held
// stays so.
func (l *Lease) Cancel() {
	if !l.dead && !l.over {
		l.m.Cancel(l.c.Now(), core.EndCancelled)
		l.settle()
	}
}

// Extend asks for ttl from now; heard gets a NoticeExtended with serial.
func (l *Lease) Extend(serial uint32, ttl time.Duration) {
	if !l.dead && !l.over {
		l.m.Extend(l.c.Now(), serial, ttl)
		l.settle()
	}
}

// settled takes the machine's notices.
func (l *Lease) settled() {
	w := l.c.w
	l.modes()
	l.believing() // what is told is told of a lease that stands
	w.notices = l.m.AppendNotices(w.notices[:0])
	for _, n := range w.notices {
		w.noticed(l, n)
		if n.Kind == core.NoticeAttempt || n.Kind == core.NoticeWatch {
			l.listen()
		}
		if n.Kind == core.NoticeFailed && n.Failure == core.ByMismatch {
			l.c.use(w.set())
		}
		if l.heard != nil && n.Kind != core.NoticeRenewed && n.Kind != core.NoticeAttempt {
			l.pass(n)
		}
	}
	if l.m.Stage() > core.Holding {
		l.unlisten()
	}
}

// pass tells the program, as an event of its own.
func (l *Lease) pass(n core.Notice) { l.c.After(0, func() { l.heard(l, n) }) }

// rest takes a lease that will send nothing more off the client's list.
func (l *Lease) rest() {
	l.stage = l.m.Stage()
	if l.over || !l.m.Quiet() || len(l.flights) > 0 {
		return
	}
	l.over = true
	l.clean = l.m.Quorum().Leftovers() == 0 && (l.m.Stage() != core.Gone || l.releasing || l.m.Reason() == core.LostClosed)
	l.c.leases = slices.DeleteFunc(l.c.leases, func(o *Lease) bool { return o == l })
	l.c.w.checkLeft(l)
	l.c.closeIdle()
}

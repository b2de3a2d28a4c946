package core_test

import (
	"fmt"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// What may happen next in a world.

type deed uint8

const (
	begins deed = iota
	carriesOut
	hears
	hearsNothing  // the request was lost, or is late
	hearsTooLate  // the answer was lost
	cannotSend    // undelivered
	outlivesLimit // of its calls
	extends
	lapses
	cancels
	releases
	promotes
	demotes
	waits // for the next retry of a release
	arrives
)

var deedNames = [...]string{
	"begins", "is carried out", "hears", "times out (request lost)", "times out (answer lost)", "cannot reach",
	"waits past its call limits", "extends", "reaches the end of its TTL", "cancels", "releases", "promotes", "demotes", "waits", "arrives late",
}

// before is what a store loses just before it carries a request out. A vote
// that runs out, or a counter that is dropped, shows to nobody until the store
// is asked again; so all moments since are this one.
type before uint8

const (
	nothing before = iota
	votes
	counter // and votes
)

type move struct {
	deed   deed
	client int // of a parcel: its place in the mail
	node   int
	before before
	keep   bool // the request travels on
}

func (m move) in(w *world) string {
	text := [...]string{"", ", after the votes there ran out", ", after votes and counter there were dropped"}[m.before]
	if m.keep {
		text += ", and the request travels on"
	}
	from, req := m.client, (*core.Request)(nil)
	switch m.deed {
	case arrives:
		from, m.node, req = w.mail[m.client].from, w.mail[m.client].to, w.mail[m.client].req
	case carriesOut, hears, hearsNothing, hearsTooLate, cannotSend:
		req = w.clients[from].flights[m.node].req
	default:
		return letter(from) + " " + deedNames[m.deed]
	}
	what := fmt.Sprintf("%s's %v/%v %d at %c (floor %d)", letter(from), req.Verb, req.Kind, req.Owner.Attempt, 'a'+m.node, req.Floor)
	if m.deed == hears {
		a := w.clients[from].flights[m.node].answer
		text = fmt.Sprintf(" %v %d", a.Outcome, a.Token) + text
	}
	return what + ": " + deedNames[m.deed] + text
}

// moves calls yield with each, until it returns false.
func (w *world) moves(sc *scope, yield func(move) bool) bool {
	if w.settled(sc) {
		return true
	}
	for i := range sc.modes {
		c := &w.clients[i]
		if !c.begun {
			if sc.alike(i) && !w.clients[i-1].begun {
				continue // to swap the two is to rename them
			}
			if !yield(move{deed: begins, client: i}) {
				return false
			}
			continue
		}
		if !w.ownMoves(sc, i, yield) {
			return false
		}
		fresh := false // whether a store was left out that is like one before it
		for s := range c.flights {
			if c.flights[s].req == nil || fresh && w.untouched(s) {
				continue
			}
			fresh = fresh || sc.order == core.AllAtOnce && w.untouched(s)
			if !w.flightMoves(sc, i, s, yield) {
				return false
			}
		}
	}
	for i := range w.mail {
		if w.mail[i].req != nil && !w.losses(sc, w.mail[i].to, func(b before) bool {
			return yield(move{deed: arrives, client: i, before: b})
		}) {
			return false
		}
	}
	return true
}

// settled reports whether no client can acquire or renew any more, so that
// what still happens shows to nobody.
func (w *world) settled(sc *scope) bool {
	for i := range sc.modes {
		if !w.clients[i].begun || !w.done(sc, i) {
			return false
		}
	}
	return true
}

// untouched reports whether nothing has happened at a store yet. Asked all at
// once, and with equal counters, such stores are alike: to swap two of them
// maps the world to itself and what follows to what follows, so the first of
// them stands for all.
func (w *world) untouched(s int) bool {
	if w.nodes[s].touched {
		return false
	}
	for i := range w.clients {
		if c := &w.clients[i]; c.begun && (c.flights[s].req == nil || c.q.Attempt() > 1) {
			return false
		}
	}
	return true
}

// ownMoves are those of a client alone.
func (w *world) ownMoves(sc *scope, i int, yield func(move) bool) bool {
	c := &w.clients[i]
	l := &w.left
	phase := c.q.Phase()
	active, _ := c.q.Extending()
	trouble := sc.troubled(i)
	calm := phase == core.Held && !active && c.now < c.q.Until()
	flying, slow := false, false
	for s := range c.flights {
		flying = flying || c.flights[s].req != nil
		slow = slow || c.flights[s].req != nil && c.flights[s].sent.Add(limit) > c.now
	}
	may := func(ok bool, d deed) bool { return !ok || yield(move{deed: d, client: i}) }
	next := c.q.Next()
	return may(phase == core.Failed && !c.given && c.q.Attempt() < sc.last(i), begins) &&
		may(l.Slow > 0 && trouble && slow && !w.done(sc, i), outlivesLimit) &&
		may(l.Extend > 0 && trouble && calm, extends) &&
		may(l.Promote > 0 && calm && c.q.Mode() == core.Shared, promotes) &&
		may(l.Demote > 0 && calm && c.q.Mode() == core.Exclusive, demotes) &&
		may(l.Lapse > 0, lapses) &&
		may(l.Cancel > 0 && trouble && phase == core.Asking, cancels) &&
		may(l.Return > 0 && phase == core.Held, releases) &&
		may(sc.tidy && !flying && next != core.Never && next > c.now && (phase == core.Failed || phase == core.Releasing), waits)
}

// done reports whether nothing that the client hears can matter any more.
func (w *world) done(sc *scope, i int) bool {
	c := &w.clients[i]
	if sc.release {
		return false
	}
	switch c.q.Phase() {
	case core.Held:
		active, _ := c.q.Extending()
		return w.left.Extend == 0 && w.left.Promote == 0 && w.left.Demote == 0 && !active && sc.last(i) == 1
	case core.Failed:
		return c.given || c.q.Attempt() >= sc.last(i)
	}
	return false
}

// flightMoves are those of a call.
func (w *world) flightMoves(sc *scope, i, s int, yield func(move) bool) bool {
	f := &w.clients[i].flights[s]
	l := &w.left
	m := move{client: i, node: s}
	with := func(d deed, keep bool) move { m.deed, m.keep = d, keep; return m }
	done, trouble := w.done(sc, i), sc.troubled(i)
	if f.answer != nil {
		return done || yield(with(hears, false)) && (l.Unknown == 0 || !trouble || yield(with(hearsTooLate, false)))
	}
	if !w.losses(sc, s, func(b before) bool {
		m.before = b
		return yield(with(carriesOut, false)) && (l.Double == 0 || !trouble || w.full() || yield(with(carriesOut, true)))
	}) {
		return false
	}
	m.before = nothing
	if done || !trouble {
		return true
	}
	return (l.Unknown == 0 || yield(with(hearsNothing, false)) && (l.Late == 0 || w.full() || yield(with(hearsNothing, true)))) &&
		(l.Undelivered == 0 || yield(with(cannotSend, false)))
}

// losses calls yield with what a store may lose now.
func (w *world) losses(sc *scope, s int, yield func(before) bool) bool {
	if !yield(nothing) {
		return false
	}
	name := w.nodes[s].name
	over := sc.anytime || w.left.Lapse < sc.left.Lapse
	if !sc.anytime {
		for _, v := range name.Votes {
			c := &w.clients[v.Owner.ID[0]-1]
			over = over && c.now >= c.until[s]
		}
	}
	if over && len(name.Votes) > 0 && !yield(votes) {
		return false
	}
	return !(over || len(name.Votes) == 0) || w.left.Drop == 0 || !name.Known || yield(counter)
}

// lose takes from a store what before says.
func (w *world) lose(s int, b before) {
	if b == nothing {
		return
	}
	n := &w.nodes[s]
	name := n.name.Clone()
	name.Votes = nil
	if b == counter {
		w.left.Drop--
		rec := *n.rec
		rec.Step = max(rec.Step, name.Counter>>core.StepBits+1)
		n.rec = &rec
		name.Known, name.Writer, name.Counter, name.Keep = false, false, 0, 0
	}
	n.name = &name
}

// play returns the world after a move, and what it broke, if anything.
func (w *world) play(sc *scope, m move) (*world, error) {
	next := *w
	w = &next
	if m.deed == arrives {
		p := w.fetch(m.client)
		w.lose(p.to, m.before)
		_, err := w.deliver(sc, p)
		return w, err
	}
	c := &w.clients[m.client]
	f := &c.flights[m.node]
	switch m.deed {
	case begins:
		return w, w.begin(sc, m.client)
	case carriesOut:
		w.lose(m.node, m.before)
		p := parcel{from: m.client, to: m.node, sent: f.sent, req: f.req}
		a, err := w.deliver(sc, p)
		f.answer = &a
		c.rehash()
		if m.keep {
			w.left.Double--
			w.post(p)
		}
		return w, err
	case hears:
		return w, w.end(sc, m.client, m.node, *f.answer)
	case hearsNothing, hearsTooLate:
		w.left.Unknown--
		if m.keep {
			w.left.Late--
			w.post(parcel{from: m.client, to: m.node, sent: f.sent, req: f.req})
		}
		return w, w.end(sc, m.client, m.node, core.Answer{Outcome: core.Unknown})
	case cannotSend:
		w.left.Undelivered--
		return w, w.end(sc, m.client, m.node, core.Answer{Outcome: core.Undelivered})
	case extends:
		w.left.Extend--
		c.now = c.now.Add(tick)
		c.stale = false
		for j := range sc.modes {
			c.stale = c.stale || w.clients[j].token > c.token && c.q.Mode() == core.Exclusive
		}
		if w.left.Drop < sc.left.Drop {
			// A counter rests ten minutes beyond the lease over it. By then a holder
			// this old has lost, which clocks that stand still do not show.
			c.stale = false
		}
		return w, w.drive(sc, m.client, func(q *core.Quorum, now clock.Instant) { q.Extend(now, leaseTTL) })
	case cancels:
		w.left.Cancel--
		c.given = true
		return w, w.drive(sc, m.client, (*core.Quorum).Abandon)
	case promotes:
		w.left.Promote--
		c.now = c.now.Add(tick)
		w.knows(sc, m.client)
		return w, w.drive(sc, m.client, (*core.Quorum).Promote)
	case demotes:
		w.left.Demote--
		c.now = c.now.Add(tick)
		return w, w.drive(sc, m.client, func(q *core.Quorum, now clock.Instant) { q.Demote(now, leaseTTL) })
	case releases:
		w.left.Return--
		return w, w.drive(sc, m.client, (*core.Quorum).Release)
	}
	return w, w.pass(sc, m)
}

// pass lets a client's clock go on.
func (w *world) pass(sc *scope, m move) error {
	c := &w.clients[m.client]
	switch m.deed {
	case outlivesLimit:
		w.left.Slow--
		c.now = c.now.Add(limit)
	case waits:
		c.now = c.q.Next()
	case lapses:
		w.left.Lapse--
		c.now = c.now.Add(leaseTTL)
	}
	return w.drive(sc, m.client, func(q *core.Quorum, now clock.Instant) {
		if (q.Phase() == core.Held || q.Promoting()) && now >= q.Until() {
			q.Lose()
		}
		q.Wake(now)
	})
}

func (w *world) begin(sc *scope, i int) error {
	c := &w.clients[i]
	if !c.begun {
		c.begun = true
		w.knows(sc, i)
	}
	return w.drive(sc, i, (*core.Quorum).Begin)
}

// end gives a client the end of its call.
func (w *world) end(sc *scope, i, s int, a core.Answer) error {
	f := w.clients[i].flights[s]
	w.clients[i].flights[s] = flight{}
	return w.drive(sc, i, func(q *core.Quorum, now clock.Instant) { q.Answer(now, s, f.seq, a) })
}

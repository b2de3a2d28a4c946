package sim

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// message is a request on its way, and then its answer.
type message struct {
	d       *driver
	store   int // in the world
	member  int // and to the machine that asks
	seq     uint32
	number  uint64
	sent    time.Duration
	req     core.Request
	answer  core.Answer
	doubled bool
}

const (
	asking = iota
	replying
)

// post sends a request, or loses it.
func (w *World) post(d *driver, c *core.Call) uint64 {
	store := d.at(c.Store)
	w.sent++
	w.report.Messages++
	number := w.sent
	w.emit(Event{What: Sent, Client: d.c.id, Store: store, Lease: d.serial(), Msg: number, Key: d.key(),
		Verb: c.Req.Verb, Kind: c.Req.Kind, Wait: c.Req.Wait, Attempt: c.Req.Owner.Attempt, Floor: c.Req.Floor})
	p := w.pair(d.c.id, store)
	noise := w.noise.Double + w.lossy[p]
	echo := w.echo[p]
	doubled := w.chance(OfNetwork, noise) || echo > 0
	for i := range 2 {
		if i == 1 && !doubled {
			break
		}
		if w.chance(OfNetwork, w.noise.Loss+w.lossy[p]) {
			w.emit(Event{What: Lost, Client: d.c.id, Store: store, Msg: number})
			continue
		}
		m := w.message()
		w.messages[m] = message{d: d, store: store, member: c.Store, seq: c.Seq, number: number, sent: w.now, req: c.Req, doubled: doubled}
		at := max(w.now, w.clogged[p]) + w.latency()
		if i == 1 {
			at += echo
		}
		w.push(event{at: at, kind: arrive, index: m})
	}
	return number
}

// message returns the place of a message that is not in use.
func (w *World) message() int32 {
	if n := len(w.free); n > 0 {
		m := w.free[n-1]
		w.free = w.free[:n-1]
		return m
	}
	w.messages = append(w.messages, message{})
	return int32(len(w.messages) - 1)
}

func (w *World) lose(index int32, answer bool) {
	m := &w.messages[index]
	w.emit(Event{What: Lost, Client: m.d.c.id, Store: m.store, Lease: m.d.serial(), Msg: m.number, Answer: answer})
	w.free = append(w.free, index)
}

// arrives brings a request to its store.
func (w *World) arrives(index int32) {
	m := &w.messages[index]
	n := w.serverOf(m.d.c.id, m.store)
	p := w.pair(m.d.c.id, m.store)
	switch {
	case w.blocked[asking][p] > 0:
		w.lose(index, false)
		return
	case n.down:
		// Nobody listens: most clients are told so, and know that nothing left.
		if m.doubled || w.chance(OfNetwork, million/4) {
			w.lose(index, false)
			return
		}
		m.answer = core.Answer{Outcome: core.Undelivered}
	case n.hangs > w.now:
		w.push(event{at: n.hangs, kind: arrive, index: index})
		return
	default:
		m.answer = w.carryOut(n, m)
	}
	delay := w.latency() + n.slow
	w.push(event{at: max(w.now, w.clogged[p]) + delay, kind: reply, index: index})
}

// replies brings an answer to its client.
func (w *World) replies(e *event) {
	m := &w.messages[e.index]
	d := m.d
	p := w.pair(d.c.id, m.store)
	if w.blocked[replying][p] > 0 || d.gone() || w.chance(OfNetwork, w.noise.Loss+w.lossy[p]) {
		w.lose(e.index, true)
		return
	}
	if d.c.paused > w.now {
		w.push(event{at: d.c.paused, kind: reply, index: e.index})
		return
	}
	number, seq, store, member, verb, kind, a := m.number, m.seq, m.store, m.member, m.req.Verb, m.req.Kind, m.answer
	w.free = append(w.free, e.index)
	d.c.unmask(store, verb, &a)
	flying := d.land(member, seq, a.Outcome)
	w.emit(Event{What: Answered, Client: d.c.id, Store: store, Lease: d.serial(), Msg: number, Key: d.key(),
		Verb: verb, Outcome: a.Outcome, Token: a.Token, Late: !flying})
	if flying {
		d.answered(member, seq, verb == core.Acquire && kind != core.Convert, a)
	}
}

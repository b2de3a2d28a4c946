package core_test

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// The world of the exhaustive search: clients that run the production Quorum,
// three stores that are the model, and the messages between them. A world is a
// small value whose parts are shared with the worlds it came from and replaced
// when they change, each with the hash of its canonical encoding.

const (
	nodes    = 3
	most     = 3 // clients
	tick     = time.Millisecond
	leaseTTL = 10 * time.Second
	limit    = time.Second // of a call
)

var seed = maphash.MakeSeed()

// budget is how much of each kind of trouble a run may still see.
type budget struct {
	Unknown int // calls that end without an answer
	Late    int // of those whose request was not delivered: it may be, at any moment after
	Double  int // requests that are delivered once more, at any moment after
	Undelivered,
	Slow, // times that a client's calls outlive their limit; they may be answered later
	Extend,
	Lapse, // ends of a client's TTL by its own clock
	Cancel,
	Return, // holders that give back
	Promote,
	Demote, // not counting those that undo a promotion
	Drop int // counters dropped, the step having passed them
}

type node struct {
	rec     *model.Record
	name    *model.Name
	touched bool
	hash    uint64
}

// flight is the call of a client to a store.
type flight struct {
	seq    uint32
	sent   clock.Instant
	req    *core.Request
	answer *core.Answer // nil until the request was delivered
}

type client struct {
	q       *core.Quorum
	now     clock.Instant // its own: clients share no clock
	flights [nodes]flight
	until   [nodes]clock.Instant // its vote may not run out there sooner
	begun   bool
	given   bool  // it gave up
	token   int64 // of its last complete acquisition
	wrote   int64 // and of the last as a writer
	writer  int64 // highest token of a writer's acquisition that was complete when its own began
	any     int64 // the same, of a reader's or a writer's
	stale   bool  // a higher token was held when the round under way began
	hash    uint64
}

// parcel is a request that still travels although nobody waits for it.
type parcel struct {
	from, to int
	sent     clock.Instant
	req      *core.Request
	hash     uint64
}

type world struct {
	nodes   [nodes]node
	clients [most]client
	mail    [2]parcel // left first, an empty one has no req
	left    budget
}

// scope is one search: who there is and what may happen.
type scope struct {
	name     string
	order    core.Order
	modes    []core.Mode // of the clients
	counters [nodes]int64
	attempts [most]uint32 // of each client; 0 is 1
	trouble  core.Set     // the clients whose calls may fail; none is all
	left     budget
	// expiry says when a vote may run out: at any moment, or not before its
	// client's clock says so.
	anytime bool
	overlap bool // check that no two hold at once
	release bool // releases travel; else they count as lost, which is the same as long as votes may run out at any moment
	tidy    bool // check that nothing is left behind
	bugs    core.Bugs
	spoil   func(*model.Name, *core.Request) // a mutant of the model
}

const key = "k"

func (sc *scope) last(i int) uint32 { return max(sc.attempts[i], 1) }

func (sc *scope) troubled(i int) bool { return sc.trouble == 0 || sc.trouble.Has(i) }

// alike reports whether client i and the one before it differ in name only.
func (sc *scope) alike(i int) bool {
	return i > 0 && sc.modes[i] == sc.modes[i-1] && sc.last(i) == sc.last(i-1) && sc.troubled(i) == sc.troubled(i-1)
}

func (sc *scope) start() *world {
	w := &world{left: sc.left}
	for i := range w.nodes {
		n := &w.nodes[i]
		rec := model.NewRecord("m", "r", 0)
		rec.Serves[0], rec.Serving = 1, 1
		n.rec, n.name = &rec, &model.Name{}
		if c := sc.counters[i]; c > 0 {
			*n.name = model.Name{Known: true, Writer: true, Counter: c, Keep: model.Time(core.CounterRest / time.Microsecond)}
		}
		n.rehash()
	}
	for i, mode := range sc.modes {
		w.clients[i].q = core.NewQuorum(core.Config{
			Rule: core.Majority(nodes), Ask: inOrder(nodes),
			Request: core.Request{
				Key: key, Mode: mode, Order: sc.order, Set: 1,
				TTL: leaseTTL, MaxTTL: leaseTTL, Owner: core.Owner{ID: core.ID{byte(i + 1)}},
			},
			Within: leaseTTL, CallLimit: limit, ReleaseLimit: 5 * limit, Bugs: sc.bugs,
			Doubles: map[bool]core.Set{true: core.Full(nodes)}[sc.left.Double > 0],
		})
		w.clients[i].rehash()
	}
	return w
}

func (n *node) rehash() {
	b, _ := n.rec.AppendBinary(make([]byte, 0, 256))
	b, _ = n.name.AppendBinary(b)
	n.hash = maphash.Bytes(seed, b)
}

func (c *client) rehash() {
	b := c.q.Append(make([]byte, 0, 512), c.now)
	for i := range c.flights {
		f := &c.flights[i]
		if f.req == nil {
			b = append(b, 0)
			continue
		}
		b = appendRequest(append(b, 1), f.req)
		if a := f.answer; a != nil {
			b = binary.AppendVarint(append(b, 1+byte(a.Outcome), bit(a.Clean)), a.Token)
		} else {
			b = binary.AppendVarint(append(b, 0), int64(c.now.Sub(f.sent)))
		}
	}
	for _, t := range c.until {
		b = binary.AppendVarint(b, int64(max(t.Sub(c.now), 0)))
	}
	b = append(b, bit(c.begun), bit(c.given), bit(c.stale))
	for _, n := range []int64{c.token, c.wrote, c.writer, c.any} {
		b = binary.AppendVarint(b, n)
	}
	c.hash = maphash.Bytes(seed, b)
}

func appendRequest(b []byte, r *core.Request) []byte {
	b = append(b, byte(r.Verb), byte(r.Kind), byte(r.Owner.Attempt), bit(r.Entomb), byte(r.Mode))
	return binary.AppendVarint(b, r.Floor)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// hash stands for the whole world. Parcels have no order.
func (w *world) hash() uint64 {
	h := uint64(17)
	mix := func(v uint64) { h = (h^v)*0x9e3779b97f4a7c15 ^ h>>29 }
	for i := range w.nodes {
		mix(w.nodes[i].hash)
	}
	for i := range w.clients {
		mix(w.clients[i].hash)
	}
	mix(w.mail[0].hash + w.mail[1].hash)
	l := w.left
	for _, n := range []int{l.Unknown, l.Late, l.Double, l.Undelivered, l.Slow, l.Extend, l.Lapse, l.Cancel, l.Return, l.Drop, l.Promote, l.Demote} {
		mix(uint64(n))
	}
	return h
}

// post leaves a request under way for good.
func (w *world) post(p parcel) {
	i := 0
	for w.mail[i].req != nil {
		i++
	}
	b := appendRequest([]byte{byte(p.from), byte(p.to)}, p.req)
	p.hash = maphash.Bytes(seed, binary.AppendVarint(b, int64(p.sent)))
	w.mail[i] = p
}

// fetch takes a parcel out of the mail.
func (w *world) fetch(i int) parcel {
	p := w.mail[i]
	copy(w.mail[i:], w.mail[i+1:])
	w.mail[len(w.mail)-1] = parcel{}
	return p
}

func (w *world) full() bool { return w.mail[len(w.mail)-1].req != nil }

// deliver carries a request out at a store.
func (w *world) deliver(sc *scope, p parcel) (core.Answer, error) {
	n := &w.nodes[p.to]
	name := n.name.Clone()
	r := *p.req
	if sc.spoil != nil {
		sc.spoil(&name, &r)
	}
	counter := name.Counter
	rec := *n.rec
	a := model.Apply(&rec, &name, r, 0)
	if rec != *n.rec {
		n.rec = &rec
	}
	if p.req.Kind == core.Repair && a.Outcome == core.Granted && name.Counter > max(counter, rec.Step<<core.StepBits, p.req.Floor) {
		return a, fmt.Errorf("repair of %d moved the counter to %d", p.req.Floor, name.Counter)
	}
	n.name, n.touched = &name, true
	n.rehash()
	if a.Outcome == core.Granted && r.Verb != core.Release {
		c := &w.clients[p.from]
		c.until[p.to] = max(c.until[p.to], p.sent.Add(r.TTL))
		c.rehash()
	}
	return a, nil
}

// drive runs one event of a client's machine and checks what it decided.
func (w *world) drive(sc *scope, i int, event func(q *core.Quorum, now clock.Instant)) error {
	c := &w.clients[i]
	q := c.q.Clone()
	c.q = q
	was, promoting := q.Phase(), q.Promoting()
	_, wonBefore := q.Extending()
	event(q, c.now)
	for _, call := range q.Calls() {
		if c.flights[call.Store].req != nil {
			return fmt.Errorf("I1: two calls of %s to one store", letter(i))
		}
		if call.Req.Verb == core.Release && !sc.release {
			continue
		}
		c.flights[call.Store] = flight{seq: call.Seq, sent: c.now, req: &call.Req}
	}
	defer c.rehash()
	undone := promoting && q.Failure() != core.NoFailure
	if was == core.Asking && q.Phase() == core.Held && !undone {
		if err := w.acquired(sc, i); err != nil {
			return err
		}
	}
	if _, won := q.Extending(); won && !wonBefore && c.stale {
		return fmt.Errorf("%s renewed in a round that began when a higher token was held", letter(i))
	}
	return nil
}

// acquired checks claim 1, and claim 2 where it is asked for.
func (w *world) acquired(sc *scope, i int) error {
	c := &w.clients[i]
	c.token = c.q.Token()
	least := c.writer
	if c.q.Mode() == core.Exclusive {
		least, c.wrote = c.any, c.token
	}
	if c.token <= least {
		return fmt.Errorf("claim 1: %s acquired %d, and %d was complete when it began", letter(i), c.token, least)
	}
	for j := range sc.modes {
		o := &w.clients[j]
		if j == i || o.token == 0 {
			continue
		}
		alone := c.q.Mode() == core.Exclusive
		if o.token == c.token && (alone || o.wrote == c.token) {
			return fmt.Errorf("claim 1: %s and %s both acquired %d", letter(i), letter(j), c.token)
		}
		if sc.overlap && o.holds() && (alone || o.q.Mode() == core.Exclusive) {
			return fmt.Errorf("claim 2: %s and %s both hold", letter(i), letter(j))
		}
	}
	return nil
}

// holds reports whether a client believes that it holds; a promotion under way
// leaves it a reader.
func (c *client) holds() bool { return c.q.Phase() == core.Held || c.q.Promoting() }

// knows sets what must lie below the token of an acquisition that begins.
func (w *world) knows(sc *scope, i int) {
	c := &w.clients[i]
	for j := range sc.modes {
		c.any, c.writer = max(c.any, w.clients[j].token), max(c.writer, w.clients[j].wrote)
	}
}

func letter(client int) string { return string(rune('A' + client)) }

package core_test

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// The world of those who wait: two or three leases that stand in the queues of three
// stores, which are the model. Messages take no time and come in every order;
// time passes only when nothing is under way, up to what is due next.

const waiters = 3 // at most

// lineScope is one search.
type lineScope struct {
	name  string
	order core.Order
	modes [waiters]core.Mode
	third bool // there are three, not two
	left  lineBudget
	bound time.Duration // by when everybody must have had the lock and given it back
	bugs  core.Bugs
	spoil func(*core.Request)  // a mutant of the model
	late  [nodes]time.Duration // by how much the stores' clocks differ
}

// lineBudget is how much trouble a run may still see.
type lineBudget struct {
	Wake    int // wakes that are lost
	Request int // requests that are lost
	Answer  int // answers that are lost
	Death   int // clients that die while they hold or wait
}

type lineCall struct {
	seq    uint32
	req    *core.Request
	answer *core.Answer
}

type lineClient struct {
	l     *core.Lease
	calls [nodes]lineCall
	had   bool
	dead  bool
}

type lineWake struct {
	client, node int
	wake         core.Wake
}

type lineWorld struct {
	now     clock.Instant
	stores  [nodes]*model.Store
	served  [nodes]model.Time // requests, each a microsecond of the store's clock
	clients [waiters]lineClient
	wakes   []lineWake
	left    lineBudget
}

const lineTTL = 4 * time.Second

// lineEpoch lies at the start of a step.
const lineEpoch = model.Time(6_000_000 * int64(core.StepPeriod/time.Microsecond))

func (sc *lineScope) start() (*lineWorld, error) {
	w := &lineWorld{left: sc.left}
	for i := range w.stores {
		w.stores[i] = model.NewStore("m", "s", "r", lineEpoch)
	}
	for i := range w.clients {
		c := core.LeaseConfig{Wait: -1, BackoffMin: 10 * time.Millisecond, BackoffMax: time.Second, Seed: 1}
		c.Config = core.Config{
			Rule: core.Majority(nodes), Ask: inOrder(nodes), Queues: true, Bugs: sc.bugs,
			Within: lineTTL, CallLimit: limit, ReleaseLimit: 5 * limit, DriftFixed: 2 * time.Millisecond, DriftPPM: 10_000,
			Request: core.Request{
				Key: key, Mode: sc.modes[i], Order: sc.order, Set: 1, TTL: lineTTL, MaxTTL: lineTTL, Owner: core.Owner{ID: core.ID{byte(i + 1)}},
			},
		}
		w.clients[i].l = core.NewLease(c)
		for s := range nodes {
			w.clients[i].l.Woken(0, s, core.Wake{Kind: core.WakeStarted})
		}
	}
	for i := range w.clients {
		if w.clients[i].dead = i == 2 && !sc.third; w.clients[i].dead {
			continue
		}
		if err := w.drive(sc, i, func(l *core.Lease, now clock.Instant) { l.Start(now) }); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *lineWorld) clone() *lineWorld {
	c := *w
	c.wakes = slices.Clone(w.wakes)
	return &c
}

// drive runs one event of a client's machine and checks what came of it.
func (w *lineWorld) drive(sc *lineScope, i int, event func(l *core.Lease, now clock.Instant)) error {
	c := &w.clients[i]
	c.l = c.l.Clone()
	event(c.l, w.now)
	for _, call := range c.l.Calls() {
		if c.calls[call.Store].req != nil {
			return fmt.Errorf("I1: two calls of %s to one store", letter(i))
		}
		c.calls[call.Store] = lineCall{seq: call.Seq, req: &call.Req}
	}
	for _, n := range c.l.Notices() {
		if n.Kind == core.NoticeLost || n.Kind == core.NoticeFailed {
			return fmt.Errorf("%s: lost or failed", letter(i))
		}
	}
	holders := 0
	for j := range w.clients {
		if o := &w.clients[j]; o.l.Until() > w.now && !o.dead {
			holders++
			if sc.modes[j] == core.Shared {
				holders += waiters
			}
		}
	}
	if holders == 2 || holders > waiters && holders%(waiters+1) != 0 {
		return fmt.Errorf("both hold")
	}
	return nil
}

// lineMove is a thing that may happen next.
type lineMove struct {
	what         string
	client, node int // of a wake: its place in the list, in client
}

func (w *lineWorld) moves() (all []lineMove) {
	under := len(w.wakes) > 0
	for i := range w.clients {
		c := &w.clients[i]
		for s := range c.calls {
			f := &c.calls[s]
			if f.req == nil {
				continue
			}
			under = true
			switch {
			case c.dead && f.answer == nil, f.answer == nil:
				all = append(all, lineMove{"carries out", i, s})
				if w.left.Request > 0 && !c.dead {
					all = append(all, lineMove{"loses the request", i, s})
				}
			default:
				all = append(all, lineMove{"answers", i, s})
				if w.left.Answer > 0 && !c.dead {
					all = append(all, lineMove{"loses the answer", i, s})
				}
			}
		}
		if c.l.Stage() == core.Holding && !c.dead {
			all = append(all, lineMove{"gives back", i, 0})
			under = true
		}
		if w.left.Death > 0 && !c.dead && c.l.Stage() <= core.Holding {
			all = append(all, lineMove{"dies", i, 0})
		}
	}
	for k := range w.wakes {
		all = append(all, lineMove{"wakes", k, 0})
		if w.left.Wake > 0 {
			all = append(all, lineMove{"loses the wake", k, 0})
		}
	}
	if !under {
		all = append(all, lineMove{"time passes", 0, 0})
	}
	return all
}

// done reports whether everybody alive has had the lock and is at rest.
func (w *lineWorld) done() bool {
	for i := range w.clients {
		c := &w.clients[i]
		if !c.dead && (!c.had || !c.l.Quiet()) {
			return false
		}
		for s := range c.calls {
			if c.calls[s].req != nil {
				return false
			}
		}
	}
	return true
}

func (w *lineWorld) play(sc *lineScope, m lineMove) (*lineWorld, error) {
	w = w.clone()
	switch m.what {
	case "time passes":
		return w, w.pass(sc)
	case "wakes", "loses the wake":
		k := w.wakes[m.client]
		w.wakes = slices.Delete(w.wakes, m.client, m.client+1)
		if m.what != "wakes" {
			w.left.Wake--
			return w, nil
		}
		if w.clients[k.client].dead {
			return w, nil
		}
		return w, w.drive(sc, k.client, func(l *core.Lease, now clock.Instant) { l.Woken(now, k.node, k.wake) })
	}
	c := &w.clients[m.client]
	f := &c.calls[m.node]
	switch m.what {
	case "carries out":
		w.deliver(sc, m.client, m.node)
		return w, nil
	case "loses the request":
		w.left.Request--
	case "loses the answer":
		w.left.Answer--
	case "gives back":
		c.had = true
		return w, w.drive(sc, m.client, (*core.Lease).Release)
	case "dies":
		w.left.Death--
		c.dead = true
		return w, nil
	}
	answer, seq := core.Answer{Outcome: core.Unknown}, f.seq
	if m.what == "answers" {
		answer = *f.answer
	}
	*f = lineCall{}
	if c.dead {
		return w, nil
	}
	return w, w.drive(sc, m.client, func(l *core.Lease, now clock.Instant) { l.Answer(now, m.node, seq, answer) })
}

// deliver carries a request out at its store, and sends what that tells.
func (w *lineWorld) deliver(sc *lineScope, i, s int) {
	f := &w.clients[i].calls[s]
	store := w.stores[s].Clone()
	w.stores[s] = store
	r := *f.req
	if sc.spoil != nil {
		sc.spoil(&r)
	}
	w.served[s]++
	at := lineEpoch + w.served[s] + model.Time((time.Duration(w.now)+sc.late[s])/time.Microsecond)
	a, wakes := store.Carry(r, at)
	f.answer = &a
	for _, k := range wakes {
		if k.Kind != core.WakeChanged {
			w.wakes = append(w.wakes, lineWake{int(k.Owner.ID[0]) - 1, s, k})
		}
	}
	slices.SortFunc(w.wakes, func(a, b lineWake) int {
		return cmp.Or(a.client-b.client, a.node-b.node, int(a.wake.Kind)-int(b.wake.Kind), cmp.Compare(a.wake.Counter, b.wake.Counter))
	})
}

// pass lets time go on to what is due next.
func (w *lineWorld) pass(sc *lineScope) error {
	next := core.Never
	for i := range w.clients {
		if !w.clients[i].dead {
			next = min(next, w.clients[i].l.Next())
		}
	}
	if next == core.Never {
		return fmt.Errorf("deadlock: nothing is under way, and nothing will be")
	}
	w.now = max(w.now, next)
	if w.now > clock.Instant(sc.bound) {
		return fmt.Errorf("not over after %v", sc.bound)
	}
	for i := range w.clients {
		if c := &w.clients[i]; !c.dead && c.l.Next() <= w.now {
			if err := w.drive(sc, i, (*core.Lease).Wake); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *lineWorld) hash() uint64 {
	b := binary.AppendVarint(nil, int64(w.now))
	for i := range w.clients {
		c := &w.clients[i]
		b = c.l.Append(b, w.now)
		b = append(b, bit(c.had), bit(c.dead))
		for s := range c.calls {
			f := &c.calls[s]
			if f.req == nil {
				b = append(b, 0)
				continue
			}
			b = appendRequest(append(b, 1, byte(f.req.Wait)), f.req)
			b = binary.AppendVarint(b, f.req.Ticket)
			if a := f.answer; a != nil {
				b = append(b, byte(a.Outcome), byte(a.Rank), bit(a.Clean))
				b = binary.AppendVarint(binary.AppendVarint(binary.AppendVarint(b, a.Token), a.Ticket), int64(a.Left))
			}
		}
	}
	for _, s := range w.stores {
		b, _ = s.AppendBinary(b)
	}
	for _, k := range w.wakes {
		b = binary.AppendVarint(append(b, byte(k.client), byte(k.node), byte(k.wake.Kind)), k.wake.Counter)
	}
	b = append(b, byte(w.left.Wake), byte(w.left.Request), byte(w.left.Answer), byte(w.left.Death))
	return maphash.Bytes(seed, b)
}

// deepest is more moves than any run needs.
const deepest = 400

// search visits every world that comes of at most so many deviations from the
// order in which moves are listed: delay-bounded search (Emmi, Qadeer, Rakamaric
// 2011). Trouble is no deviation: it may come at every moment.
func (sc *lineScope) search(deviations int) (states int, longest time.Duration, found string) {
	seen := map[uint64]int{} // the most deviations that were left there
	var path []lineMove
	var visit func(w *lineWorld, left int)
	visit = func(w *lineWorld, left int) {
		if w.done() {
			longest = max(longest, time.Duration(w.now))
			return
		}
		first := true
		for _, m := range w.moves() {
			rest := left
			if !m.trouble() {
				if !first {
					rest--
				}
				first = false
			}
			if rest < 0 {
				continue
			}
			next, err := w.play(sc, m)
			path = append(path, m)
			if err == nil && len(path) > deepest {
				err = fmt.Errorf("no end after %d moves", deepest)
			}
			if err != nil {
				found = sc.retell(path) + err.Error()
				return
			}
			h := next.hash()
			if before, known := seen[h]; !known || before < rest {
				seen[h] = rest
				if visit(next, rest); found != "" {
					return
				}
			}
			path = path[:len(path)-1]
		}
	}
	w, err := sc.start()
	if err != nil {
		return 0, 0, err.Error()
	}
	visit(w, deviations)
	return len(seen), longest, found
}

// retell writes a way out, a line for each move.
func (sc *lineScope) retell(path []lineMove) string {
	var b strings.Builder
	w, _ := sc.start()
	for _, m := range path {
		b.WriteString(w.tell(m) + "\n")
		w, _ = w.play(sc, m)
	}
	return b.String()
}

func (w *lineWorld) tell(m lineMove) string {
	switch m.what {
	case "wakes", "loses the wake":
		k := w.wakes[m.client]
		return fmt.Sprintf("%v  %c %s %s: %v %d", time.Duration(w.now), 'a'+k.node, m.what, letter(k.client), k.wake.Kind, k.wake.Counter&0xff)
	case "time passes":
		return fmt.Sprintf("%v  time passes", time.Duration(w.now))
	case "gives back", "dies":
		return fmt.Sprintf("%v  %s %s", time.Duration(w.now), letter(m.client), m.what)
	}
	f := w.clients[m.client].calls[m.node]
	text := fmt.Sprintf("%v  %s %c's %v/%v/%v %d", time.Duration(w.now), m.what, 'A'+m.client, f.req.Verb, f.req.Kind, f.req.Wait, f.req.Owner.Attempt)
	text += fmt.Sprintf(" at %c (ticket %d)", 'a'+m.node, f.req.Ticket&0xffff)
	if f.answer != nil {
		text += fmt.Sprintf(": %v rank %d", f.answer.Outcome, f.answer.Rank)
	}
	return text
}

package sim

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// ear is what a client hears of one key: one watch a store for all its leases
// that wait, or hold for long.
type ear struct {
	c         *Client
	key       int
	watches   []*watch
	listeners []*Lease
	standing  core.Set // members whose watch stands, as far as the client knows
	life      uint32
	closed    bool
}

// watch is a subscription at one store. What is told travels as messages do.
type watch struct {
	e      *ear
	store  int
	member int
	node   *node // whose server it stands at; nil while it does not
}

// watchAgain is how long a client pauses before it begins a watch anew.
const watchAgain = 100 * time.Millisecond

// listen lets a lease hear what the stores tell of its key.
func (l *Lease) listen() {
	w := l.c.w
	if !w.cfg.Watches || l.ear != nil || l.dead {
		return
	}
	for _, e := range l.c.ears {
		if e.key == l.key && e.listeners[0].of == l.of {
			e.add(l)
			standing := e.standing
			l.c.After(0, func() { l.stand(standing) })
			return
		}
	}
	e := &ear{c: l.c, key: l.key, listeners: []*Lease{l}, life: l.c.life}
	l.ear = e
	l.c.ears = append(l.c.ears, e)
	for i := range w.cfg.Stores {
		member := i
		if w.zone != nil {
			member = i / w.zone.N()
		} else if l.of.Members != nil {
			if member = slices.Index(l.of.Members, i); member < 0 {
				continue
			}
		}
		s := &watch{e: e, store: i, member: member}
		e.watches = append(e.watches, s)
		s.begin()
	}
}

func (e *ear) add(l *Lease) {
	l.ear = e
	e.listeners = append(e.listeners, l)
}

// joins lets a lease that has asked nothing yet hear what is heard already.
func (l *Lease) joins() {
	for _, e := range l.c.ears {
		if e.key == l.key && e.listeners[0].of == l.of {
			e.add(l)
			l.stand(e.standing)
		}
	}
}

// stand lets a lease know which watches stood before it listened.
func (l *Lease) stand(standing core.Set) {
	for i := range l.of.Rule.N() {
		if standing.Has(i) && l.ear != nil {
			l.m.Woken(l.c.Now(), i, core.Wake{Kind: core.WakeStarted})
			l.settle()
		}
	}
}

// unlisten ends that, and the watches with the last who listened.
func (l *Lease) unlisten() {
	e := l.ear
	if e == nil {
		return
	}
	l.ear = nil
	e.listeners = slices.DeleteFunc(e.listeners, func(o *Lease) bool { return o == l })
	if len(e.listeners) == 0 {
		e.close()
		l.c.ears = slices.DeleteFunc(l.c.ears, func(o *ear) bool { return o == e })
	}
}

func (e *ear) close() {
	e.closed = true
	for _, s := range e.watches {
		s.cut()
	}
}

// cut takes the watch from its server.
func (s *watch) cut() {
	if n := s.node; n != nil {
		n.watches = slices.DeleteFunc(n.watches, func(o *watch) bool { return o == s })
		s.node = nil
	}
}

// begin asks the store for the watch, and goes on asking.
func (s *watch) begin() {
	w, c := s.e.c.w, s.e.c
	w.push(event{at: w.now + w.latency(), kind: hook, fn: func() {
		n := w.serverOf(c.id, s.store)
		p := w.pair(c.id, s.store)
		switch {
		case s.e.closed:
		case n.down || n.hangs > w.now || n.full > 0 || w.blocked[asking][p] > 0 || w.chance(OfNetwork, w.noise.Loss+w.lossy[p]):
			w.push(event{at: w.now + watchAgain, kind: call, c: c, life: s.e.life, fn: s.begin})
		default:
			s.node = n
			n.watches = append(n.watches, s)
			s.post(n, core.Wake{Kind: core.WakeStarted})
		}
	}})
}

// hangUp ends all watches of a server that stops. Clients find that out by
// themselves, some time.
func (n *node) hangUp(w *World) {
	for _, s := range n.watches {
		s.node = nil
		at := w.now + w.latency() + w.upTo(OfNetwork, time.Second)
		w.push(event{at: at, kind: call, c: s.e.c, life: s.e.life, fn: func() {
			if !s.e.closed {
				s.heard(core.Wake{Kind: core.WakeEnded})
				s.begin()
			}
		}})
	}
	n.watches = nil
}

// tell sends what a store has to tell about a key to all that watch it.
func (n *node) tell(w *World, key int, wakes []core.Wake) {
	for _, s := range n.watches {
		if s.e.key != key {
			continue
		}
		for _, k := range wakes {
			s.post(n, k)
		}
	}
}

// post sends one wake to a client: it may be lost, late or doubled, and passes
// others.
func (s *watch) post(n *node, k core.Wake) {
	w, c := s.e.c.w, s.e.c
	p := w.pair(c.id, s.store)
	for i := range 2 {
		if i == 1 && !w.chance(OfNetwork, w.noise.Double+w.lossy[p]) {
			break
		}
		if w.chance(OfNetwork, w.noise.Loss+w.lossy[p]) {
			w.report.Deaf++
			continue
		}
		at := max(w.now, w.clogged[p]) + w.latency() + n.slow
		w.push(event{at: at, kind: call, c: c, life: s.e.life, fn: func() {
			if w.blocked[replying][p] > 0 {
				w.report.Deaf++
				return
			}
			s.heard(k)
		}})
	}
}

// heard passes a wake on to the leases that it is for.
func (s *watch) heard(k core.Wake) {
	e, w := s.e, s.e.c.w
	switch k.Kind {
	case core.WakeStarted:
		e.standing = e.standing.With(s.member)
	case core.WakeEnded:
		e.standing = e.standing.Without(s.member)
	}
	for _, l := range append([]*Lease(nil), e.listeners...) {
		toOne := k.Kind == core.WakeTurn || k.Kind == core.WakeNext
		if l.dead || l.ear != e || toOne && k.Owner.ID != l.id {
			continue
		}
		w.report.Wakes[k.Kind]++
		w.emit(Event{What: Hears, Client: e.c.id, Store: s.store, Lease: l.serial, Key: l.key, Wake: k.Kind, Token: k.Counter})
		l.m.Woken(e.c.Now(), s.member, k)
		l.settle()
	}
}

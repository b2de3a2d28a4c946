package quorum

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// hub is what the leases of a Locker share: one line of waiters a key, and one
// watch a key and store, however many wait or hold.
type hub struct {
	seats   []watchSeat
	queues  bool    // every store keeps a queue: whoever waits stands in all of them
	request Request // of every watch, but for the key

	mu      sync.Mutex
	closed  bool
	crowds  map[string]*crowd
	watched int           // keys
	begun   uint64        // watches of keys so far
	running int           // goroutines
	idle    chan struct{} // closed once closed is set and none runs
}

// watchSeat is a store that tells, and the member of the set that it is in.
type watchSeat struct {
	Watcher
	name   string
	member int
}

const (
	// mostHeld is how many keys are watched for holders alone. A lease that is
	// not watched finds out by its next renewal.
	mostHeld = 1000
	// lingers is how long the watches of a key stand after the last who listened:
	// who takes a lock again and again needs not begin them anew each time.
	lingers = time.Second
	// A watch that ended by an error begins again after a pause that doubles.
	watchAgainMin = 100 * time.Millisecond
	watchAgainMax = 10 * time.Second
)

func newHub(l *Locker) *hub {
	h := &hub{crowds: map[string]*crowd{}, idle: make(chan struct{})}
	h.request = Request{Set: l.print, MaxTTL: l.def.maxTTL, Limit: callLimit(l.def.ttl, 1)}
	h.queues = true
	for i, m := range l.set.members {
		h.queues = h.queues && m.Limits().Queues
		leaves := []Store{m}
		if inner, ok := As[*CombinedStore](m); ok {
			leaves = inner.leaves()
		}
		for _, s := range leaves {
			if w, ok := As[Watcher](s); ok && s.Limits().Watches {
				h.seats = append(h.seats, watchSeat{w, s.Name(), i})
			}
		}
	}
	return h
}

// crowd returns that of a key. The caller holds mu, and drops it when done.
func (h *hub) crowd(key string) *crowd {
	c := h.crowds[key]
	if c == nil {
		c = &crowd{}
		h.crowds[key] = c
	}
	return c
}

// drop forgets a crowd that nobody is left of. The caller holds mu.
func (h *hub) drop(key string, c *crowd) {
	if len(c.line) == 0 && len(c.listeners) == 0 && c.stop == nil {
		delete(h.crowds, key)
	}
}

// listen lets a lease hear what the stores tell of its key. The first that does
// begins the watches.
func (h *hub) listen(l *Lease, holds bool) {
	if len(h.seats) == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.crowds[l.Key()]
	watched := c != nil && c.stop != nil
	if h.closed || watched && c.listens(l) >= 0 || holds && !watched && h.watched >= mostHeld {
		return
	}
	c = h.crowd(l.Key())
	c.add(l)
	if c.stop != nil {
		standing := c.standing
		l.later(func() { l.stand(standing) })
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	h.watched++
	h.begun++
	c.generation = h.begun
	h.running += len(h.seats)
	for _, s := range h.seats {
		go h.watch(ctx, s, l.Key(), c.generation)
	}
}

// unlisten ends that, and a while later, if nobody listens until then, the watches.
func (h *hub) unlisten(l *Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.crowds[l.Key()]
	if c == nil {
		return
	}
	if i := c.listens(l); i >= 0 {
		c.listeners = slices.Delete(c.listeners, i, i+1)
	}
	switch {
	case len(c.listeners) > 0 || c.stop == nil:
	case h.closed || h.watched > mostHeld:
		h.end(l.Key(), c)
	case c.rest == nil:
		c.rest = time.AfterFunc(lingers, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			if len(c.listeners) == 0 && c.stop != nil {
				h.end(l.Key(), c)
			}
		})
	default:
		c.rest.Reset(lingers)
	}
	h.drop(l.Key(), c)
}

// end ends the watches of a key. The caller holds mu.
func (h *hub) end(key string, c *crowd) {
	c.stop()
	c.stop, c.standing = nil, 0
	h.watched--
	h.drop(key, c)
}

// replace lets another lease hear instead of l.
func (h *hub) replace(l, heir *Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.crowds[l.Key()]; c != nil {
		if i := c.listens(l); i >= 0 {
			c.listeners[i].Lease = heir
		}
	}
}

// watch keeps one store's watch of a key up until ctx ends.
func (h *hub) watch(ctx context.Context, s watchSeat, key string, generation uint64) {
	defer h.done()
	pause := watchAgainMin
	r := h.request
	r.Key = key
	for ctx.Err() == nil {
		err := s.watch(ctx, r, func(w Wake) {
			if w.Kind == WakeStarted {
				pause = watchAgainMin
			}
			h.tell(s.member, key, generation, w)
		})
		h.tell(s.member, key, generation, Wake{Kind: wakeEnded})
		if err == nil && ctx.Err() == nil {
			err = fmt.Errorf("store %q ended a watch by itself", s.name)
		}
		if err == nil {
			return
		}
		again := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-again.C:
		}
		again.Stop()
		pause = min(2*pause, watchAgainMax)
	}
}

// watch is one call. A panic of a store is an error.
func (s watchSeat) watch(ctx context.Context, r Request, tell func(Wake)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("store %q panicked: %v", s.name, p)
		}
	}()
	return s.Watch(ctx, r, tell)
}

// tell passes a wake on to those it concerns, each key's in the order in which
// they were told. It does not block the store that tells. What a watch tells
// that was ended, and perhaps begun anew since, is of no use any more: its end
// would hide that the new one stands.
func (h *hub) tell(member int, key string, generation uint64, w Wake) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.crowds[key]
	if c == nil || h.closed || c.stop == nil || c.generation != generation {
		return
	}
	switch w.Kind {
	case WakeStarted:
		c.standing = c.standing.With(member)
	case wakeEnded:
		c.standing = c.standing.Without(member)
	}
	c.told = append(c.told, news{member, w, slices.Clone(c.listeners)})
	if len(c.told) == 1 {
		h.running++
		go h.passOn(c)
	}
}

// passOn carries what a crowd was told to its leases, until there is no more.
// What is being carried stays in the list, so that nobody else begins.
func (h *hub) passOn(c *crowd) {
	defer h.done()
	h.mu.Lock()
	defer h.mu.Unlock()
	for ; len(c.told) > 0; c.told = c.told[1:] {
		n := c.told[0]
		h.mu.Unlock()
		for _, l := range n.to {
			if l.concerns(n.wake) {
				l.woken(n.member, n.wake)
			}
		}
		h.mu.Lock()
	}
}

// wakeEnded says that a watch stands no more.
const wakeEnded = WakeKind(core.WakeEnded)

// stand lets a lease know which watches stood before it listened.
func (l *Lease) stand(standing core.Set) {
	for i := range core.MaxMembers {
		if standing.Has(i) {
			l.woken(i, Wake{Kind: WakeStarted})
		}
	}
}

// woken lets a lease know what a store told.
func (l *Lease) woken(member int, w Wake) {
	l.d.do(func(now clock.Instant) {
		l.m.Woken(now, member, core.Wake{Kind: core.WakeKind(w.Kind), Counter: w.Counter, After: w.After})
	})
}

func (h *hub) done() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running--; h.running == 0 && h.closed {
		close(h.idle)
	}
}

// close ends all watches. It waits for them until ctx ends, but not for long: a
// store that does not heed its context is waited for by nobody.
func (h *hub) close(ctx context.Context) {
	h.mu.Lock()
	closed := h.closed
	h.closed = true
	for _, c := range h.crowds {
		if c.stop != nil {
			c.stop()
		}
		if c.rest != nil {
			c.rest.Stop()
		}
	}
	if h.running == 0 && !closed {
		close(h.idle)
	}
	h.mu.Unlock()
	limit := time.NewTimer(h.request.Limit)
	defer limit.Stop()
	select {
	case <-h.idle:
	case <-limit.C:
	case <-ctx.Done():
	}
}

package sim

import (
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// Client is a process with one locker. Its program runs as callbacks, one at a
// time; it may do what it likes with a client, its own leases and [Client.Choose],
// and with nothing else.
type Client struct {
	w       *World
	id      int
	clock   ticker
	pace    int64 // the clock's rate while the machine is awake
	asleep  int   // how many faults let it sleep
	paused  time.Duration
	life    uint32
	down    bool
	closing bool
	closed  bool // and everything given back
	onClose func()
	leases  []*Lease // that still send or hold
	refills []*refill
	servers identities
	set     *Set
	errands []*errand
	ears    []*ear
	health  []core.Health // of the members of the set, and of those of each zone
	swept   clock.Instant
	stop    bool // the world is winding down
}

func (w *World) newClient(i int) *Client {
	c := &Client{w: w, id: i, clock: ticker{parts: million}, refills: make([]*refill, w.cfg.Stores), servers: newIdentities(w.cfg.Stores), health: make([]core.Health, 1+w.cfg.Zones)}
	// Clocks of clients mean nothing outside: they start anywhere.
	c.clock.read = int64(time.Second) + int64(w.upTo(OfClock, time.Hour))
	if w.cfg.Rates {
		c.clock.parts = w.rate()
	}
	c.pace = int64(c.clock.parts)
	c.set = w.set()
	return c
}

// ID returns the client's number, from 0.
func (c *Client) ID() int { return c.id }

// Now reads the client's own clock.
func (c *Client) Now() clock.Instant { return c.clock.instant(c.w.now) }

// Choose draws for the client's program; 0 is the calm choice.
func (c *Client) Choose(n uint64) uint64 { return c.w.choices.Choose(OfWork, n) }

// Stopping reports whether the world is winding down: a program should begin
// nothing new then and give back what it holds.
func (c *Client) Stopping() bool { return c.stop }

// After runs f once d has passed on the client's clock. It does not run while
// the process is stopped, and never once it has died.
func (c *Client) After(d time.Duration, f func()) {
	at := c.w.now
	if d > 0 {
		at = c.clock.due(c.Now().Add(d))
	}
	if at == never { // the machine sleeps: look again when it is awake
		at = max(c.paused, c.w.now+time.Millisecond)
		again := f
		f = func() { c.After(d, again) }
	}
	c.w.push(event{at: at, kind: call, c: c, life: c.life, fn: f})
}

func (c *Client) called(e *event) {
	switch {
	case c.life != e.life:
	case c.paused > c.w.now:
		later := *e
		later.at = c.paused
		c.w.push(later)
	default:
		if c.w.chance(OfNetwork, c.w.noise.Pauses) {
			c.paused = c.w.now + c.w.upTo(OfNetwork, c.w.cfg.TTL+c.w.cfg.TTL/2)
		}
		e.fn()
	}
}

// start begins a life of the process.
func (c *Client) start() {
	c.closing, c.closed = false, false
	c.use(c.w.set())
	if c.w.cfg.Chore != nil {
		c.w.cfg.Chore(c)
	}
	if c.stop {
		c.probe()
		return
	}
	if c.w.cfg.Program != nil {
		c.w.cfg.Program(c)
	} else {
		c.work()
	}
}

// kill ends a life of the process: what it knew is gone.
func (c *Client) kill() {
	for _, l := range c.leases {
		l.dead = true
		l.stopBelieving()
	}
	c.endRefills()
	for _, e := range c.errands {
		e.end()
	}
	c.errands = nil
	if c.closing && !c.closed {
		c.onClose = nil
	}
	for _, e := range c.ears {
		e.close()
	}
	c.ears = nil
	c.leases, c.servers, c.health = nil, newIdentities(len(c.refills)), make([]core.Health, len(c.health))
	c.life++
	c.down = true
}

// turnClock lets the client's clock run as it should now.
func (c *Client) turnClock() {
	parts := uint64(max(c.pace, 0))
	if c.asleep > 0 {
		parts = 0
	}
	c.clock.bend(c.w.now, 0, parts)
	for _, l := range c.leases {
		l.timer = never
		l.arm()
		if l.believes {
			l.until = c.clock.due(l.m.Until())
			c.w.emit(Event{What: Reckons, Client: c.id, Store: -1, Lease: l.serial, Key: l.key, Token: l.token, Until: l.until})
		}
	}
	for _, r := range c.refills {
		if r != nil {
			r.timer = never
			r.arm()
		}
	}
	for _, e := range c.errands {
		if !e.dead {
			e.timer = never
			e.arm()
		}
	}
}

// Close closes the client's locker: whoever waits fails, what is held is given
// back, and done, if any, runs once nothing is under way any more. Acquiring
// fails from now on.
func (c *Client) Close(done func()) {
	c.w.emit(Event{What: Closes, Client: c.id, Store: -1})
	c.closing, c.onClose = true, done
	for _, l := range append([]*Lease(nil), c.leases...) {
		now := c.Now()
		l.m.Cancel(now, core.EndClosed)
		l.m.Shut(now)
		l.settle()
	}
	c.closeIdle()
}

func (c *Client) closeIdle() {
	if !c.closing || c.closed || len(c.leases) > 0 {
		return
	}
	c.closed = true
	if c.w.cfg.Mutant != RefillsOutliveClose {
		c.endRefills()
	}
	if c.onClose != nil {
		c.After(0, c.onClose)
	}
}

// Open opens another locker after [Client.Close] is done.
func (c *Client) Open() { c.closing, c.closed = false, false }

package quorum

import (
	"slices"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// crowd is whoever of this process waits for a key or has it watched.
type crowd struct {
	// line is who waits, in the order of asking. The first asks the stores for
	// all: of a thousand that wait here, they see one.
	line    []*Lease
	denied  bool         // somebody in line has asked, in vain
	outlook core.Failure // of whoever asked last

	listeners []listener
	standing  core.Set    // members whose watch stands
	stop      func()      // ends the watches
	rest      *time.Timer // does that, once nobody has listened for a while

	generation uint64 // of the watches
	told       []news // what they told and was not passed on to all yet
}

// news is a wake on its way to those who listened when it was told.
type news struct {
	member int
	wake   Wake
	to     []listener
}

// listener is a lease that hears what is told of its key, and how stores name it
// to all.
type listener struct {
	*Lease
	digest string
}

// concerns reports whether a wake is for it or for all.
func (l listener) concerns(w Wake) bool {
	return w.Kind != WakeTurn && w.Kind != WakeNext || w.Owner == l.digest
}

func (c *crowd) add(l *Lease) { c.listeners = append(c.listeners, listener{l, l.owner().Digest()}) }

// listens returns where a lease stands among those that listen, or -1.
func (c *crowd) listens(l *Lease) int {
	return slices.IndexFunc(c.listeners, func(o listener) bool { return o.Lease == l })
}

// join puts a lease in line, and reports whether it is to ask now. Readers ask
// side by side as long as none was denied: they do not wait for one another.
// Where the key is watched already, the lease listens from the beginning, and
// loses no turn. The caller holds the lease's d.mu.
func (h *hub) join(l *Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.crowd(l.Key())
	c.line = append(c.line, l)
	if l.listens = c.stop != nil; l.listens {
		c.add(l)
		for i := range core.MaxMembers {
			if c.standing.Has(i) {
				l.m.Woken(0, i, core.Wake{Kind: core.WakeStarted})
			}
		}
	}
	return len(c.line) == 1 || l.set.mode == ModeShared && !c.denied || l.set.failOnOutage && c.outlook == core.ByNoQuorum
}

// leave takes a lease out of the line when its wait is over, and lets the next
// ask. Behind a reader that got in, all readers may.
func (h *hub) leave(l *Lease, won bool) {
	h.mu.Lock()
	c := h.crowd(l.Key())
	i := slices.Index(c.line, l)
	c.line = slices.Delete(c.line, i, i+1)
	var next []*Lease
	if won {
		c.outlook = core.ByHeld
		c.denied = c.denied && l.set.mode != ModeShared
	}
	for j, o := range c.line {
		if j == 0 && i == 0 || won && l.set.mode == ModeShared && o.set.mode == ModeShared {
			next = append(next, o)
		}
		if o.set.mode != ModeShared {
			break
		}
	}
	h.drop(l.Key(), c)
	h.mu.Unlock()
	for _, o := range next {
		o.admit()
	}
}

func (l *Lease) admit() { l.d.do(func(now clock.Instant) { l.m.Admit(now) }) }

// refused hears that an attempt of a lease failed. first says that the lease
// goes on asking; who else is to ask, because it does not wait through an
// outage, is returned as well.
func (h *hub) refused(l *Lease, why core.Failure) (first bool, also []*Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.crowd(l.Key())
	c.denied, c.outlook = true, why
	first = len(c.line) > 0 && c.line[0] == l
	if first && why == core.ByNoQuorum {
		for _, o := range c.line[1:] {
			if o.set.failOnOutage {
				also = append(also, o)
			}
		}
	}
	return first, also
}

// outlookOf is what whoever asked last for all came to.
func (h *hub) outlookOf(key string) core.Failure {
	h.mu.Lock()
	defer h.mu.Unlock()
	if c := h.crowds[key]; c != nil {
		return c.outlook
	}
	return core.NoFailure
}

// freed wakes who is first in line when a lease of this process was given
// back: no store need tell.
func (h *hub) freed(key string) {
	h.mu.Lock()
	var first *Lease
	if c := h.crowds[key]; c != nil && len(c.line) > 0 {
		first = c.line[0]
	}
	h.mu.Unlock()
	if first != nil {
		first.woken(0, Wake{Kind: WakeChanged})
	}
}

package quorum

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// keeper carries stores out of quarantine in the background, by the strategy
// of the composite that each is a direct member of. It has no goroutine: each
// store's refill is a driver with a timer.
type keeper struct {
	l *Locker

	mu      sync.Mutex
	closed  bool
	swept   clock.Instant
	sweeps  bool // some store may be in quarantine
	running map[seat]*refill
	told    map[seat]bool
}

// seat is a place in the tree of stores.
type seat struct {
	set *CombinedStore
	i   int
}

// refill is one store on its way.
type refill struct {
	keeper *keeper
	seat
	d      *driver
	m      *core.Refill
	inside bool // it was found in quarantine
	toldAt clock.Instant
}

// stuckAgain is how often a store that cannot leave is reported.
const stuckAgain = time.Minute

func newKeeper(l *Locker) *keeper {
	k := &keeper{l: l, running: map[seat]*refill{}, told: map[seat]bool{}}
	for _, s := range l.set.leaves() {
		k.sweeps = k.sweeps || quarantines(s)
	}
	return k
}

// quarantines reports whether a store may come to be in quarantine: it forgets,
// or it keeps a record that others can take away, as a file that is deleted.
func quarantines(s Store) bool {
	_, keeps := As[HighWater](s)
	limits := s.Limits()
	return limits.Forgets || keeps && limits.Reach >= ReachHost
}

// sweep looks at every store that may be in quarantine, at most once in half a
// MaxTTL: one that acquisitions happen not to need would otherwise stay there
// until they do.
func (k *keeper) sweep(now clock.Instant) {
	if !k.sweeps {
		return
	}
	k.mu.Lock()
	due := !k.closed && (k.swept == 0 || now.Sub(k.swept) >= k.l.def.maxTTL/2)
	if due {
		k.swept = max(now, 1)
	}
	k.mu.Unlock()
	if due {
		k.each(k.l.set, k.start)
	}
}

// each visits the seats of all stores that may be in quarantine.
func (k *keeper) each(set *CombinedStore, visit func(seat)) {
	for i, m := range set.members {
		if inner, ok := As[*CombinedStore](m); ok {
			k.each(inner, visit)
		} else if quarantines(m) {
			visit(seat{set, i})
		}
	}
}

// met hears the answer of a member.
func (k *keeper) met(set *CombinedStore, i int, err error, nested []Vote) {
	if inner, ok := As[*CombinedStore](set.members[i]); ok {
		for j, v := range nested {
			k.met(inner, j, v.Err, v.Votes)
		}
		return
	}
	if err != nil && OutcomeOf(err) == OutcomeQuarantined {
		k.start(seat{set, i})
	}
}

// start begins the refill of a store, unless it is under way.
func (k *keeper) start(at seat) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.running[at] != nil {
		return
	}
	def := k.l.def
	r := &refill{keeper: k, seat: at, m: core.NewRefill(core.RefillConfig{
		Rule: at.set.rule, Store: at.i, CallLimit: callLimit(def.ttl, 1),
		Request: core.Request{MaxTTL: def.maxTTL, Set: uint64(k.l.print)},
	})}
	r.d = newDriver(context.Background(), r.m, r, &means{set: at.set, clock: def.clock, crew: k.l.crew, agenda: k.l.agenda})
	k.running[at] = r
	// Not here: the event would lock what is locked.
	go r.d.do(func(now clock.Instant) { r.m.Start(now) })
}

// settled looks at a refill after each event.
func (r *refill) settled(now clock.Instant) func() {
	k := r.keeper
	name := r.set.members[r.i].Name()
	switch stage := r.m.Stage(); {
	case stage == core.RefillDone:
		inside, alone := r.inside, r.m.Alone()
		return func() { k.finish(r, name, inside, alone) }
	case stage == core.RefillResting && r.m.Quarantined():
		if r.inside && (!r.m.Stuck() || now.Sub(r.toldAt) < stuckAgain) {
			return nil
		}
		r.inside, r.toldAt = true, now
		e := Event{Kind: EventQuarantine, Store: name, Left: r.m.Next().Sub(now)}
		if r.m.Stuck() {
			e.Err = fmt.Errorf("store %q stays out: a store that does not answer could still complete a quorum without it; "+
				"bring that one back, or declare %q fresh with Init", name, name)
		}
		return func() {
			k.l.reports.tell(e)
			k.noteNewSet(r.seat, e.Left)
		}
	}
	return nil
}

// finish takes a store that votes off the list.
func (k *keeper) finish(r *refill, name string, inside, alone bool) {
	r.d.stop()
	k.mu.Lock()
	known := k.running[r.seat] == r
	if known { // an answer that comes late finds another at this seat
		delete(k.running, r.seat)
		delete(k.told, r.seat)
	}
	k.mu.Unlock()
	if !known || !inside {
		return
	}
	e := Event{Kind: EventRefilled, Store: name}
	if alone {
		e.Err = fmt.Errorf("store %q left quarantine without a quorum of other stores: "+
			"that its tokens go on growing rests on the servers' clocks", name)
	}
	k.l.reports.tell(e)
}

// noteNewSet says once when every store is in quarantine: a set that was never
// used looks like one that forgot everything.
func (k *keeper) noteNewSet(at seat, left time.Duration) {
	all := 0
	k.each(k.l.set, func(seat) { all++ })
	k.mu.Lock()
	before := len(k.told)
	k.told[at] = true
	complete := len(k.told) == len(k.l.set.leaves()) && before < len(k.told)
	k.mu.Unlock()
	if complete && all == len(k.l.set.leaves()) {
		k.l.reports.tell(Event{Kind: EventNewSet, Left: left})
	}
}

// close stops all refills. Calls in flight end by their limits.
func (k *keeper) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	for _, r := range k.running {
		r.d.stop()
	}
}

package sim

import (
	"strconv"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// node is a store: the model, its own clock, and what ails it.
type node struct {
	index int
	store *model.Store
	clock ticker
	pace  int64 // the clock's rate when it is not frozen
	ice   int
	life  int
	down  bool
	hangs time.Duration // until then it does nothing
	slow  time.Duration
	full  int
	deny  int
	kept  *model.Store  // what a roll-back goes back to
	lost  time.Duration // when it last lost something; never if it did not
	twin  int           // how many faults let its address lead to another's server
	leads int           // to whose
	other *node         // the second server that thinks it is this store
	torn  []bool        // clients that reach that one

	watches []*watch
}

// epoch is what a right clock shows at the start of a run, in microseconds
// since 1970: 20 seconds before the stores' steps move.
const epoch = 1_780_000_200_000_000 - 20_000_000

// time is the store's own reading.
func (n *node) time(at time.Duration) model.Time {
	return model.Time(epoch + n.clock.now(at)/int64(time.Microsecond))
}

func (w *World) startNode(i int) {
	n := &w.nodes[i]
	// Nothing shows negative time: what is drawn spreads over two skews.
	n.clock = ticker{parts: million, read: int64(w.upTo(OfClock, 2*w.cfg.Skew))}
	if w.cfg.Rates {
		n.clock.parts = w.rate()
	}
	n.pace = int64(n.clock.parts)
	n.index, n.lost = i, -1
	n.store = model.NewStore(StoreName(i), "server-"+StoreName(i), n.run(), n.time(0))
}

// run names the life of the store's server.
func (n *node) run() string { return StoreName(n.index) + strconv.Itoa(n.life+1) }

// rate is that of a clock within the assumed bound: half the allowance either
// way, so that two of them differ by no more than all of it.
func (w *World) rate() uint64 {
	half := uint64(w.cfg.DriftPPM) * 100 / 201
	r := w.choices.Choose(OfClock, 2*half+1) // 0 is right
	if r > half {
		return million - (r - half)
	}
	return million + r
}

// carryOut lets a store do what a request asks.
func (w *World) carryOut(n *node, m *message) core.Answer {
	switch {
	case n.full > 0:
		return core.Answer{Outcome: core.Unknown} // an error that says nothing of what was done
	case n.deny > 0 && m.req.Verb != core.Release:
		return core.Answer{Outcome: core.Contended}
	}
	force := w.forces(n, &m.req)
	a, wakes := w.cfg.Mutant.apply(w, n, m)
	if force != nil && a.Outcome == core.Granted {
		force.done(w, n, &m.req)
	}
	d := m.d
	e := Event{What: Carried, Client: d.c.id, Store: m.store, Lease: d.serial(), Msg: m.number, Key: d.key(), Mode: m.req.Mode,
		Verb: m.req.Verb, Kind: m.req.Kind, Wait: m.req.Wait, Attempt: m.req.Owner.Attempt, Floor: m.req.Floor, Outcome: a.Outcome, Token: a.Token}
	if a.Outcome == core.Granted && m.req.Verb <= core.Extend {
		e.Until = n.clock.when(n.clock.now(w.now) + int64(a.TTL))
		w.granted(d.owner(), m.store, m.sent)
	}
	if m.req.Wait.Queued() && w.late(m.sent) {
		d.owner().orphans = d.owner().orphans.With(m.store) // its place there ends by itself
	}
	w.emit(e)
	if len(wakes) > 0 {
		n.tell(w, d.key(), wakes)
	}
	return a
}

// restart begins another life of a store's server.
func (w *World) restart(f *Fault, i int) {
	n := &w.nodes[i]
	n.life++
	run := n.run()
	switch f.Kind {
	case Restart:
		n.store.Restart(n.store, run)
	case Forget:
		n.lost = w.now
		n.store.Forget(run)
	case RollBack:
		if n.kept != nil {
			n.lost = w.now
			n.store.Restart(n.kept, run)
		}
	}
	w.cfg.Mutant.restarted(w, f, n)
}

func (w *World) remember(fault int) {
	f := &w.plan.Faults[fault]
	for i := range w.nodes {
		if f.Stores.Has(i) {
			w.nodes[i].kept = w.nodes[i].store.Clone()
		}
	}
}

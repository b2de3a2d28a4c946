package sim

import (
	"slices"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// Whoever takes a name by force holds it beside a holder that does not know yet:
// claim 2 does not stand between them, and claim 1 does. What the world checks
// is that the old holder cannot renew once no quorum of its votes stands: then
// it learns within its validity, and from then on claim 2 stands again.

// takeOver is what one request by force does to others at a store.
type takeOver struct {
	spared []model.Vote // what a store keeps that has the mistake
	robbed []core.ID
}

// forces looks at whom a request is about to take votes from.
func (w *World) forces(n *node, req *core.Request) *takeOver {
	if req.Kind != core.Force || req.Verb != core.Acquire {
		return nil
	}
	t := &takeOver{}
	if kept := n.store.Look(req.Key); kept != nil {
		for _, v := range kept.Live(&n.store.Record, w.cfg.MaxTTL, n.time(w.now)) {
			if v.Owner.ID != req.Owner.ID {
				t.spared, t.robbed = append(t.spared, v), append(t.robbed, v.Owner.ID)
			}
		}
	}
	return t
}

// done notes who lost a vote.
func (t *takeOver) done(w *World, n *node, req *core.Request) {
	for _, c := range w.clients {
		for _, l := range c.leases {
			if slices.Contains(t.robbed, l.id) {
				l.robbed = w.now
			}
		}
	}
	if kept := n.store.Look(req.Key); w.cfg.Mutant == ForceSpares && kept != nil {
		kept.Forced = nil
		kept.Votes = append(kept.Votes, t.spared...)
		slices.SortFunc(kept.Votes, func(a, b model.Vote) int { return a.Owner.ID.Compare(b.Owner.ID) })
	}
}

// excused reports whether a lease may believe beside another: somebody took a
// vote of it by force after its last round began, and no quorum is left.
func (l *Lease) excused() bool {
	w := l.c.w
	if l.robbed == 0 || l.robbed < l.founded {
		return false
	}
	if l.of.Members != nil || w.zone != nil {
		return true // whose quorums are not looked at here
	}
	var left core.Set
	for i := range w.nodes {
		if v := l.vote(&w.nodes[i]); v != nil && v.Until > w.nodes[i].time(w.now) {
			left = left.With(i)
		}
	}
	return !l.of.Rule.Met(left)
}

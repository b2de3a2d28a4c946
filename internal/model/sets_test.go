package model_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

func serve(from, to core.Sets, mods ...mod) core.Request {
	r := core.Request{Verb: core.Serve, MaxTTL: maxTTL, Serve: &core.ServeOrder{From: from, To: to}}
	for _, m := range mods {
		m(&r)
	}
	return r
}

func (n *node) sets() core.Sets { return n.do(core.Request{Verb: core.ReadSets}).Sets }

func TestR48RecordServesOtherSets(t *testing.T) {
	const next = 0xbeef
	old, both, after := core.SetsOf(set), core.SetsOf(next, set), core.SetsOf(next)
	other := func(r *core.Request) { r.Set = next }
	cases(t, map[string]func(*node){
		"none before the first request": func(n *node) {
			if got := n.sets(); got.N != 0 {
				n.Errorf("a new store serves %v", got)
			}
			n.granted(acquire(1, 1), 1)
			if got := n.sets(); got != old {
				n.Errorf("it serves %v, want %v", got, old)
			}
		},
		"from one to the other": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.released(serve(old, both))
			n.granted(extend(1, 1, other), 1)
			n.refused(acquire(2, 1, other), core.Contended, true)
			n.released(serve(core.SetsOf(set, next), after))
			n.refused(extend(1, 1), core.Mismatch, false)
			if got := n.sets(); got != after {
				n.Errorf("it serves %v, want %v", got, after)
			}
		},
		"only from what was meant": func(n *node) {
			n.granted(acquire(1, 1), 1)
			for _, from := range []core.Sets{{}, after, both} {
				a := n.do(serve(from, core.SetsOf(5)))
				if a.Outcome != core.Mismatch || a.Sets != old {
					n.Errorf("from %v = %s, %v; want a mismatch that names %v", from, a.Outcome, a.Sets, old)
				}
			}
			if got := n.sets(); got != old {
				n.Errorf("it serves %v, want %v", got, old)
			}
		},
		"a stranger's question changes nothing": func(n *node) {
			n.granted(acquire(1, 1), 1)
			n.store.Restart(n.store, "run2")
			before := n.store.Record
			n.do(core.Request{Verb: core.ReadSets, Set: 7, MaxTTL: time.Second})
			if n.store.Record != before {
				n.Errorf("the record became %+v, and was %+v", n.store.Record, before)
			}
		},
		"a record that is missing begins its quarantine": func(n *node) {
			n.store.Forget("run2")
			n.released(serve(core.Sets{}, both))
			n.pass(maxTTL - time.Second)
			n.quarantined(acquire(1, 1, other))
			if r := n.reading(); r.Quarantine == "" || r.Over {
				n.Errorf("the record is %+v, want in quarantine", r)
			}
			n.pass(time.Second)
			if r := n.reading(); !r.Over {
				n.Errorf("the record is %+v, want over: it counts from the move", r)
			}
		},
		"to nothing": func(n *node) { n.invalid(serve(core.Sets{}, core.Sets{})) },
		"without MaxTTL": func(n *node) {
			n.invalid(serve(core.Sets{}, old, func(r *core.Request) { r.MaxTTL = 0 }))
		},
	})
}

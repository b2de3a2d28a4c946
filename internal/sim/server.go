package sim

import "github.com/quorumlock/quorum/internal/core"

// Which server stands behind the address of a store, and what clients know of
// that.

// serverOf returns the server that a client reaches at a store's address.
func (w *World) serverOf(client, store int) *node {
	n := &w.nodes[store]
	if n.twin > 0 {
		n = &w.nodes[n.leads]
	}
	if n.other != nil && n.torn[client] {
		return n.other
	}
	return n
}

// join lets the addresses of stores lead to the server of the first of them,
// or to their own again. From then on what clients left in a store is no
// longer where they would take it back.
func (w *World) join(f *Fault, by, store int) {
	first := 0
	for !f.Stores.Has(first) {
		first++
	}
	if store != first {
		w.nodes[store].twin += by
		w.nodes[store].leads = first
	}
	for i := range w.nodes {
		w.nodes[i].lost = w.now
		w.nodes[i].hangUp(w)
	}
}

// split lets a store become two servers that both think they are it: the
// fault's clients reach the one, all others the other. It breaks an
// assumption.
func (w *World) split(f *Fault, by, store int) {
	n := &w.nodes[store]
	n.hangUp(w)
	if n.lost = w.now; by < 0 {
		if n.other != nil {
			n.other.hangUp(w)
		}
		n.other = nil
		return
	}
	other := *n
	other.store = n.store.Clone()
	n.other, n.torn = &other, make([]bool, len(w.clients))
	w.affected(f, func(c int) { n.torn[c] = true })
}

// identities is what a client was told of who its stores are: one server under
// two names would have two votes.
type identities struct {
	known []string
	twin  []int // of whom, or -1
}

func newIdentities(n int) identities {
	x := identities{known: make([]string, n), twin: make([]int, n)}
	for i := range x.twin {
		x.twin[i] = -1
	}
	return x
}

// meet notes who answered for store i, and reports whether that is the server
// of a store met before, as the driver of the library does.
func (x *identities) meet(i int, server string) bool {
	of := x.twin[i]
	if x.known[i] == server && (of < 0 || x.known[of] == server) {
		return of >= 0
	}
	x.known[i], x.twin[i] = server, -1
	for j, other := range x.known {
		if j != i && other == server && x.twin[j] < 0 {
			x.twin[i] = j
			return true
		}
	}
	return false
}

// unmask turns the answer of a twin into one that is no vote.
func (c *Client) unmask(store int, verb core.Verb, a *core.Answer) {
	if a.Server != "" && verb != core.Release && verb != core.Raise && c.servers.meet(store, a.Server) && c.w.cfg.Mutant != TwinsUnseen {
		a.Outcome, a.Clean = core.Twin, false
	}
}

package simpage

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// bar is something that lasts: a vote in a store, a client's belief or its
// wait.
type bar struct {
	client, lease, key int
	shared             bool
	from, to           time.Duration
	token              int64
	open               bool
}

// beliefs returns, by client, when each believed that it held, and when it
// waited to.
func beliefs(t *sim.Trace) (held, waits [][]bar) {
	held, waits = make([][]bar, t.Config.Clients), make([][]bar, t.Config.Clients)
	find := func(bars [][]bar, e *sim.Event) *bar {
		for i := len(bars[e.Client]) - 1; i >= 0; i-- {
			if b := &bars[e.Client][i]; b.lease == e.Lease && b.open {
				return b
			}
		}
		return &bar{}
	}
	for i := range t.Events {
		e := &t.Events[i]
		switch e.What {
		case sim.Asks:
			waits[e.Client] = append(waits[e.Client], bar{client: e.Client, lease: e.Lease, key: e.Key, from: e.At, to: t.Config.Duration, open: true})
		case sim.Acquires:
			end(find(waits, e), e.At)
			held[e.Client] = append(held[e.Client], bar{client: e.Client, lease: e.Lease, key: e.Key,
				shared: e.Mode == core.Shared, from: e.At, to: e.Until, token: e.Token, open: true})
		case sim.Promotes, sim.Demotes:
			end(find(held, e), e.At)
			held[e.Client] = append(held[e.Client], bar{client: e.Client, lease: e.Lease, key: e.Key,
				shared: e.Mode == core.Shared, from: e.At, to: e.Until, token: e.Token, open: true})
		case sim.Fails:
			end(find(waits, e), e.At)
		case sim.Renews, sim.Reckons:
			find(held, e).to = e.Until
		case sim.GivesBack, sim.Loses:
			end(find(held, e), e.At)
		case sim.FaultOn:
			if f := &t.Plan.Faults[e.Fault]; f.Kind == sim.Kill {
				for c := range held {
					if befalls(f, c) {
						endAll(held[c], e.At)
						endAll(waits[c], e.At)
					}
				}
			}
		}
	}
	return held, waits
}

func end(b *bar, at time.Duration) { b.to, b.open = min(b.to, at), false }

func endAll(bars []bar, at time.Duration) {
	for i := range bars {
		if bars[i].open {
			end(&bars[i], at)
		}
	}
}

// befalls reports whether a fault is one of client c.
func befalls(f *sim.Fault, c int) bool {
	for _, i := range f.Clients {
		if i == c {
			return true
		}
	}
	return f.Clients == nil
}

// together returns when two clients held a key at once that ought to be alone.
func together(held [][]bar) []bar {
	var out []bar
	for c := range held {
		for _, other := range held[:c] {
			for _, a := range held[c] {
				for _, b := range other {
					from, to := max(a.from, b.from), min(a.to, b.to)
					if a.key == b.key && !(a.shared && b.shared) && from < to {
						out = append(out, bar{key: a.key, from: from, to: to})
					}
				}
			}
		}
	}
	return out
}

// votes returns, by store, the votes that it kept. The trace tells the end of
// a vote when it is given; what befalls the store's clock later moves it.
func votes(t *sim.Trace) [][]bar {
	out := make([][]bar, t.Config.Stores)
	rates := make([]float64, t.Config.Stores)
	for i := range rates {
		rates[i] = 1
	}
	for i := range t.Events {
		e := &t.Events[i]
		switch e.What {
		case sim.Carried:
			out[e.Store] = carried(out[e.Store], e)
		case sim.FaultOn, sim.FaultOff:
			f := &t.Plan.Faults[e.Fault]
			for s := range out {
				if f.Stores.Has(s) {
					upset(out[s], f, e, &rates[s])
				}
			}
		}
	}
	for s := range out {
		for i := range out[s] {
			out[s][i].to = min(out[s][i].to, t.Config.Duration)
		}
	}
	return out
}

// carried follows what a request did to the votes of a store.
func carried(votes []bar, e *sim.Event) []bar {
	if e.Outcome != core.Granted {
		return votes
	}
	for i := range votes {
		b := &votes[i]
		if !b.open || b.key != e.Key || b.to <= e.At {
			continue
		}
		switch {
		case b.lease != e.Lease:
			if e.Verb == core.Acquire && (e.Mode == core.Exclusive || !b.shared) {
				end(b, e.At)
			}
		case e.Verb == core.Release:
			end(b, e.At)
		case e.Verb == core.Extend:
			b.to, b.token = max(b.to, e.Until), e.Token
			return votes
		case e.Verb == core.Acquire:
			end(b, e.At)
		}
	}
	if e.Verb == core.Acquire {
		votes = append(votes, bar{client: e.Client, lease: e.Lease, key: e.Key, shared: e.Mode == core.Shared,
			from: e.At, to: e.Until, token: e.Token, open: true})
	}
	return votes
}

// upset moves the ends of votes when a fault of their store begins or ends.
func upset(votes []bar, f *sim.Fault, e *sim.Event, rate *float64) {
	on := e.What == sim.FaultOn
	for i := range votes {
		b := &votes[i]
		if !b.open || b.to <= e.At {
			continue
		}
		switch left := b.to - e.At; {
		case f.Kind == sim.ClockStep && on:
			b.to = e.At + max(left-f.Amount, 0)
		case f.Kind == sim.ClockRate:
			b.to = e.At + time.Duration(float64(left)**rate/changed(*rate, f, on))
		case f.Kind == sim.ClockFreeze && on:
			b.to += f.For
		case (f.Kind == sim.Forget || f.Kind == sim.Flush || f.Kind == sim.Drop || f.Kind == sim.Evict) && on:
			end(b, e.At)
		}
	}
	if f.Kind == sim.ClockRate {
		*rate = changed(*rate, f, on)
	}
}

func changed(rate float64, f *sim.Fault, on bool) float64 {
	if on {
		return rate + float64(f.Rate)/1e6
	}
	return rate - float64(f.Rate)/1e6
}

package simpage

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// arrow is one way of a message: from a client to a store, or back.
type arrow struct {
	event         int // the index of the event at its end, or of its loss
	client, store int
	back          bool
	from, to      time.Duration
	lost          bool
	verb          core.Verb
	kind          core.Kind
	outcome       core.Outcome // of an answer
	late          bool
}

// background are requests that keep stores voting, and belong to no lock.
func (a *arrow) background() bool { return a.verb == core.ReadStep || a.verb == core.Raise }

// arrows pairs the departures and arrivals of messages.
func arrows(t *sim.Trace) []arrow {
	type call struct {
		sent    sim.Event
		carried time.Duration // the last time; 0 is not yet
	}
	var out []arrow
	calls := map[uint64]*call{}
	for i := range t.Events {
		e := &t.Events[i]
		if e.What == sim.Sent {
			calls[e.Msg] = &call{sent: *e}
			continue
		}
		c := calls[e.Msg]
		if c == nil || e.Store < 0 {
			continue
		}
		a := arrow{event: i, client: e.Client, store: e.Store, from: c.sent.At, to: e.At, verb: c.sent.Verb, kind: c.sent.Kind}
		switch {
		case e.What == sim.Lost && !e.Answer:
			a.lost = true
			a.to = max(a.to, a.from+t.Plan.Noise.Base)
		case e.What == sim.Lost:
			a.back, a.lost, a.from = true, true, c.carried
		case e.What == sim.Carried:
			c.carried = e.At
		case e.What == sim.Answered:
			if c.carried == 0 { // nobody was there to carry it out
				middle := a.from + (a.to-a.from)/2
				there := a
				there.to = middle
				out = append(out, there)
				c.carried = middle
			}
			a.back, a.from, a.outcome, a.late = true, c.carried, e.Outcome, e.Late
		default:
			continue
		}
		out = append(out, a)
	}
	return out
}

package sim

import (
	"time"
)

// beginFault lets a fault of the plan come.
func (w *World) beginFault(i int) {
	f := &w.plan.Faults[i]
	if w.ended {
		return
	}
	w.emit(Event{What: FaultOn, Client: -1, Store: -1, Fault: i})
	w.turn(f, +1)
	w.push(event{at: min(w.now+f.For, w.cfg.Duration), kind: faultEnds, index: int32(i)})
}

// endFault lets it go.
func (w *World) endFault(i int) {
	f := &w.plan.Faults[i]
	w.emit(Event{What: FaultOff, Client: -1, Store: -1, Fault: i})
	w.turn(f, -1)
}

// turn switches a fault on (by 1) or off (by -1). Faults may overlap, so what
// they do is counted.
func (w *World) turn(f *Fault, by int) {
	switch f.Kind {
	case Partition, PartitionAsk, PartitionReply, Clog, Lossy, Echo:
		w.affected(f, func(c int) {
			for s := range w.nodes {
				if f.Stores.Has(s) {
					w.turnPath(f, by, w.pair(c, s))
				}
			}
		})
	case Pause, Kill, Drift, Doze:
		w.affected(f, func(c int) { w.clients[c].turn(f, by) })
	default:
		for s := range w.nodes {
			if f.Stores.Has(s) {
				w.turnNode(f, by, s)
			}
		}
	}
}

func (w *World) turnPath(f *Fault, by, pair int) {
	switch f.Kind {
	case Partition:
		w.blocked[asking][pair] += uint8(by)
		w.blocked[replying][pair] += uint8(by)
	case PartitionAsk:
		w.blocked[asking][pair] += uint8(by)
	case PartitionReply:
		w.blocked[replying][pair] += uint8(by)
	case Clog:
		if by > 0 {
			w.clogged[pair] = max(w.clogged[pair], min(w.now+f.For, w.cfg.Duration))
		}
	case Echo:
		w.echo[pair] += time.Duration(by) * f.Amount
	case Lossy:
		w.lossy[pair] = uint64(int64(w.lossy[pair]) + int64(by)*f.Rate)
	}
}

func (w *World) turnNode(f *Fault, by, s int) {
	n := &w.nodes[s]
	switch f.Kind {
	case Slow:
		n.slow += time.Duration(by) * f.Amount
	case Hang:
		if by > 0 {
			n.hangs = max(n.hangs, min(w.now+f.For, w.cfg.Duration))
		}
	case Full:
		n.full += by
	case Deny:
		n.deny += by
	case Crash, Restart, Forget, RollBack:
		if n.down = by > 0; n.down {
			n.hangUp(w)
		} else {
			w.restart(f, s)
		}
	case Flush:
		if by > 0 {
			n.lost = w.now
			n.store.Forget(n.store.Record.Run)
		}
	case ClockStep:
		if by > 0 {
			n.clock.bend(w.now, f.Amount, n.clock.parts)
		}
	case ClockRate:
		n.pace += int64(by) * f.Rate
		n.turnClock(w.now)
	case ClockFreeze:
		n.ice += by
		n.turnClock(w.now)
	case Drop, Evict, ClockLeap:
		if by > 0 {
			n.lose(w, f)
		}
	case Twins:
		w.join(f, by, s)
	case Split:
		w.split(f, by, s)
	}
}

// lose takes from a store what it ought to keep.
func (n *node) lose(w *World, f *Fault) {
	n.lost = w.now
	switch f.Kind {
	case Drop:
		n.store.Drop(w.keys[0].text)
	case Evict:
		n.store.Evict(w.keys[0].text)
	case ClockLeap: // what its server drops by itself once its time is over
		n.store.Expire(n.time(w.now).Add(f.Amount))
	}
}

// turnClock lets the clock run as it should now.
func (n *node) turnClock(at time.Duration) {
	if n.ice > 0 {
		n.clock.bend(at, 0, 0)
	} else {
		n.clock.bend(at, 0, uint64(max(n.pace, 0)))
	}
}

// turn is turnNode for a client.
func (c *Client) turn(f *Fault, by int) {
	w := c.w
	switch f.Kind {
	case Pause:
		if by > 0 {
			c.paused = max(c.paused, min(w.now+f.For, w.cfg.Duration))
		}
	case Kill:
		if by > 0 {
			c.kill()
		} else if c.down {
			c.down = false
			c.start()
		}
	case Drift:
		c.pace += int64(by) * f.Rate
		c.turnClock()
	case Doze:
		if by > 0 {
			c.paused = max(c.paused, min(w.now+f.For, w.cfg.Duration))
		}
		c.asleep += by
		c.turnClock()
	}
}

// calmDown ends the first phase: no fault begins any more, and those that last
// end by themselves at this very moment.
func (w *World) calmDown() {
	w.ended = true
	w.noise = w.plan.Noise.calm()
	w.emit(Event{What: Calms, Client: -1, Store: -1})
	if w.cfg.Open {
		w.deadline = w.now
		return
	}
	w.deadline = w.now + w.bound()
	for _, c := range w.clients {
		c.windDown()
	}
}

// bound is how long after the last fault everything must have come to rest:
// votes that nobody gives back end within MaxTTL of being met, a quarantine
// lasts as long, what was on its way arrives, and then everybody who waits gets
// in by turns.
func (w *World) bound() time.Duration {
	turns := time.Duration(min(w.cfg.Clients, maxProbes)*2) * (4 * time.Second)
	return 4*w.cfg.MaxTTL + w.plan.Noise.LateBy + w.cfg.ReleaseLimit + 10*time.Second + turns
}

// maxProbes is how many clients ask once all is calm.
const maxProbes = 16

// settled reports whether everything has come to rest.
func (w *World) settled() bool {
	if w.probes > 0 || w.refilling > 0 || w.cfg.Busy != nil && w.cfg.Busy() {
		return false
	}
	for _, c := range w.clients {
		if len(c.leases) > 0 || !c.closed {
			return false
		}
	}
	return true
}

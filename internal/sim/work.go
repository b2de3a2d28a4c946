package sim

import (
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// work is what a client does without a program of its own.
func (c *Client) work() {
	wk := &c.w.cfg.Work
	c.After(time.Millisecond+c.w.upTo(OfWork, wk.Think), func() {
		switch {
		case c.stop:
		case c.w.chance(OfWork, wk.Close):
			c.Close(func() {
				if !c.stop {
					c.Open()
					c.work()
				}
			})
		default:
			c.lockOne()
		}
	})
}

// job is one lock of the workload.
type job struct {
	c      *Client
	leaks  bool
	done   bool
	writes int
}

func (c *Client) lockOne() {
	w := c.w
	wk := &w.cfg.Work
	j := &job{c: c}
	r := Request{Key: int(c.Choose(uint64(w.cfg.Keys))), Order: w.cfg.Order, Wait: wk.Wait/8 + w.upTo(OfWork, wk.Wait)}
	if w.chance(OfWork, wk.Shared) {
		r.Mode = core.Shared
	}
	r.Force = r.Mode == core.Exclusive && w.chance(OfWork, wk.Force)
	if w.chance(OfWork, wk.Try) {
		r.Wait = 0
	}
	if wk.Mixed {
		r.TTL = w.cfg.TTL / 4 << c.Choose(3)
	}
	if w.chance(OfWork, wk.AnyWay) {
		r.Order = core.Order(c.Choose(3))
	}
	if w.chance(OfWork, wk.Leak) {
		j.leaks, r.NoRenew = true, true
	}
	l := c.Acquire(r, j.heard)
	if l != nil && w.chance(OfWork, wk.Cancel) {
		c.After(w.upTo(OfWork, wk.Wait/4), func() { l.Cancel() })
	}
}

// change changes the mode of some leases, half way, and sometimes twice.
func (j *job) change(l *Lease, hold time.Duration) {
	w := j.c.w
	wk := &w.cfg.Work
	switch {
	case l.mode == core.Shared && w.chance(OfWork, wk.Promote):
		j.c.After(hold/3, func() { l.Promote(2) })
		if w.chance(OfWork, wk.Demote) {
			j.c.After(hold/2, func() { l.Demote(3) })
		}
	case l.mode == core.Exclusive && w.chance(OfWork, wk.Demote):
		j.c.After(hold/2, func() { l.Demote(3) })
	}
}

// next goes on to the next lock, once.
func (j *job) next() {
	if !j.done {
		j.done = true
		if !j.c.stop {
			j.c.work()
		}
	}
}

func (j *job) heard(l *Lease, n core.Notice) {
	w := j.c.w
	wk := &w.cfg.Work
	switch n.Kind {
	case core.NoticeAcquired:
		if j.c.stop {
			l.Release()
			return
		}
		hold := w.upTo(OfWork, wk.Hold)
		if w.chance(OfWork, wk.Brief) {
			hold = 0
		}
		if w.chance(OfWork, wk.Extend) {
			j.c.After(hold/2, func() { l.Extend(1, l.ttl+(w.cfg.MaxTTL-l.ttl)/2) })
		}
		j.change(l, hold)
		if l.mode == core.Exclusive {
			j.write(l)
		}
		if j.leaks {
			j.next()
			return
		}
		j.c.After(hold, l.Release)
	case core.NoticeChanged:
		if n.OK && l.mode == core.Exclusive && !j.c.stop {
			j.write(l)
		}
	case core.NoticeLost:
		// Most programs give back what they lost once they have stopped.
		if j.c.Choose(4) > 0 {
			l.Release()
		}
		j.next()
	case core.NoticeFailed, core.NoticeReleased:
		j.next()
	}
}

// write writes again and again while the lease is held, or longer if the
// program is careless.
func (j *job) write(l *Lease) {
	w := j.c.w
	j.writes++
	careless := w.chance(OfWork, w.cfg.Work.Ignores)
	if l.mode == core.Shared || j.writes > 20 || j.done && !careless || !l.Write(careless) {
		return
	}
	j.c.After(w.cfg.Work.Write/2+w.upTo(OfWork, w.cfg.Work.Write), func() { j.write(l) })
}

// Write writes to a resource that checks tokens and to one that does not. The
// client looks at its clock first, unless it is careless, and reports whether
// it wrote: what happens between that look and the arrival no lock can know.
func (l *Lease) Write(careless bool) bool {
	if l.dead || !careless && l.Remaining() == 0 {
		return false
	}
	w := l.c.w
	w.report.Writes++
	w.sent++
	number, as := w.sent, l.tenure
	l.c.After(0, func() { // a pause may come here
		w.emit(Event{What: Writes, Client: l.c.id, Store: -1, Lease: l.serial, Key: l.key, Token: as.token, Msg: number})
		w.push(event{at: w.now + w.latency(), kind: hook, fn: func() { w.write(l, as, number) }})
	})
	return true
}

// write arrives at the two resources.
func (w *World) write(l *Lease, as tenure, number uint64) {
	k := w.keys[l.key]
	e := Event{What: WriteDone, Client: l.c.id, Store: -1, Lease: l.serial, Key: l.key, Token: as.token, Msg: number}
	if as.acquired < k.open {
		w.report.Stale++
	}
	k.open = max(k.open, as.began)
	w.emit(e)
	e.Fenced = true
	if as.token < k.fence && w.cfg.Mutant != FenceLooksAway {
		w.report.Refused++
		e.What = WriteFails
		w.emit(e)
		return
	}
	if as.acquired < k.fenced && w.order {
		w.violate(Fence, l.key, "the write of lease %d (token %s) was taken after one of a later holder", l.serial, Token(as.token))
	}
	k.fence, k.fenced = max(k.fence, as.token), max(k.fenced, as.began)
	w.emit(e)
}

// windDown ends what a client does: it gives up and back, and then asks once
// more, twice, to see that it gets in.
func (c *Client) windDown() {
	c.stop = true
	if c.id < maxProbes {
		c.w.probes++
	}
	if c.down {
		return // it starts with the probe
	}
	c.After(0, func() {
		for _, l := range append([]*Lease(nil), c.leases...) {
			l.Cancel()
			l.Release()
		}
		switch {
		case c.closing && !c.closed:
			c.onClose = func() { c.Open(); c.probe() }
		default:
			c.Open()
			c.probe()
		}
	})
}

// probe takes and gives back a lock twice, at least half a MaxTTL apart, so
// that every store is looked at, and closes the locker.
func (c *Client) probe() {
	if c.id >= maxProbes {
		c.Close(nil)
		return
	}
	left := 2
	var ask func()
	ask = func() {
		c.Acquire(Request{Key: c.id % c.w.cfg.Keys, Wait: -1, Order: c.w.cfg.Order}, func(l *Lease, n core.Notice) {
			switch n.Kind {
			case core.NoticeAcquired:
				c.After(50*time.Millisecond, l.Release)
			case core.NoticeLost:
				l.Release()
			case core.NoticeFailed, core.NoticeReleased:
				if n.Failure == core.ByMismatch { // it knows the set in use by now
					c.After(time.Second, ask)
					return
				}
				if left--; left > 0 {
					c.After(c.w.cfg.MaxTTL/2+time.Second, ask)
					return
				}
				c.leave()
			}
		})
	}
	ask()
}

// leave closes the locker once every store that the client carries out of
// quarantine votes.
func (c *Client) leave() {
	if now := c.w.set(); c.set != now {
		c.use(now)
		c.sweep()
	}
	for _, r := range c.refills {
		if r != nil {
			c.After(100*time.Millisecond, c.leave)
			return
		}
	}
	c.w.probes--
	c.Close(nil)
}

package quorum

import (
	"container/heap"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// agenda wakes the machines of a Locker at their instants, with one timer for
// all of them: a hundred thousand held leases are a heap and no timers. Those
// that are due are woken by the crew, so that an observer that blocks in one
// wake keeps nobody else's from its end.
//
// Of renewals only so many are under way at a time; others wait for their turn,
// and who can bear that least comes first. A process that was held up, or whose
// stores were, finds thousands due at once: their calls would wait for one
// another until their limits were over, be made anew, and none would get through.
type agenda struct {
	clock clock.Clock
	crew  *crew

	mu      sync.Mutex
	heap    agendaHeap
	timer   *time.Timer // for the first; made when first needed
	rounds  int         // renewals under way that have not won
	waiting turns       // some do not wait any more
}

// agendaRounds is how many renewals are under way at a time: at a round trip of
// 50 ms it is enough for 100,000 leases of 30 s.
const agendaRounds = 512

// turn is how a driver stands with the renewals.
type turn uint8

const (
	turnNone turn = iota
	turnWaits
	turnTaken
)

// set lets a driver be woken at an instant, [core.Never] included, and at firm
// if what is due before is a renewal, which may have to wait for its turn;
// renewing says that one is under way. One that is to be looked at earlier
// already stays where it is, and moves when that time comes: most events put off
// what was going to happen if they had not come, and so cost nothing here. The
// caller holds the driver's mu.
func (a *agenda) set(d *driver, at, firm clock.Instant, renewing bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case d.turn == turnTaken && !renewing:
		d.turn = turnNone
		a.rounds--
		a.next()
	case d.turn == turnWaits && at == core.Never:
		d.turn = turnNone
	case d.turn == turnWaits:
		at = firm
	}
	d.due, d.firm = at, firm
	switch {
	case at == core.Never:
		a.leave(d)
		return
	case d.place == 0:
		d.at = at
		heap.Push(&a.heap, d)
	case at < d.at:
		d.at = at
		heap.Fix(&a.heap, int(d.place)-1)
	default:
		return
	}
	if d.place == 1 {
		a.arm()
	}
}

// waits reports whether a driver's renewal waits for its turn. The caller holds
// the driver's mu.
func (a *agenda) waits(d *driver) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return d.turn == turnWaits
}

// next has those woken whose turn to be renewed has come.
func (a *agenda) next() {
	for a.rounds < agendaRounds && len(a.waiting) > 0 {
		d := heap.Pop(&a.waiting).(waits).d
		if d.turn == turnWaits {
			a.leave(d)
			a.renew(d)
			a.crew.take(delivery{d: d, wake: true})
		}
	}
}

// renew counts a renewal that is about to begin.
func (a *agenda) renew(d *driver) {
	d.turn = turnTaken
	a.rounds++
}

func (a *agenda) leave(d *driver) {
	if d.place > 0 {
		heap.Remove(&a.heap, int(d.place)-1)
	}
}

// arm sets the timer for the first. Where it was set for one before that has
// gone since, it rings in vain. It reads the clock itself: a caller that was
// held up since it did would put off everybody's timer by that time.
func (a *agenda) arm() {
	after := a.heap[0].at.Sub(a.clock.Now())
	if a.timer == nil {
		a.timer = time.AfterFunc(after, a.ring)
	} else {
		a.timer.Reset(after)
	}
}

// ring has everything woken that is due.
func (a *agenda) ring() {
	a.mu.Lock()
	due := a.collect()
	if len(a.heap) > 0 {
		a.arm()
	}
	a.mu.Unlock()
	for _, d := range due {
		a.crew.take(delivery{d: d, wake: true})
	}
}

func (a *agenda) collect() (due []*driver) {
	for now := a.clock.Now(); len(a.heap) > 0 && a.heap[0].at <= now; {
		d := a.heap[0]
		renewal := d.firm > now
		switch {
		case d.due > now:
			d.at = d.due
		case renewal && a.rounds >= agendaRounds:
			d.turn = turnWaits
			heap.Push(&a.waiting, waits{d, d.firm})
			d.due, d.at = d.firm, d.firm
		default:
			heap.Pop(&a.heap)
			if renewal {
				a.renew(d)
			}
			due = append(due, d)
			continue
		}
		heap.Fix(&a.heap, 0)
	}
	return due
}

// agendaHeap orders drivers by when they are due. Each knows its place, from 1.
type agendaHeap []*driver

func (h agendaHeap) Len() int           { return len(h) }
func (h agendaHeap) Less(i, j int) bool { return h[i].at < h[j].at }
func (h agendaHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = int32(i+1), int32(j+1)
}

func (h *agendaHeap) Push(x any) {
	d := x.(*driver)
	*h = append(*h, d)
	d.place = int32(len(*h))
}

func (h *agendaHeap) Pop() any {
	last := len(*h) - 1
	d := (*h)[last]
	(*h)[last], *h = nil, (*h)[:last]
	d.place = 0
	return d
}

// waits is a driver that waits for its turn.
type waits struct {
	d    *driver
	firm clock.Instant // the driver's when it began to wait
}

// turns orders them by what each can bear, so that a lease of two seconds does
// not wait behind thousands of a minute.
type turns []waits

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].firm < t[j].firm }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)        { *t = append(*t, x.(waits)) }
func (t *turns) Pop() any {
	last := len(*t) - 1
	w := (*t)[last]
	(*t)[last], *t = waits{}, (*t)[:last]
	return w
}

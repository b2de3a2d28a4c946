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
type agenda struct {
	clock clock.Clock
	crew  *crew

	mu    sync.Mutex
	heap  agendaHeap
	timer *time.Timer // for the first; made when first needed
}

// set lets a driver be woken at an instant, [core.Never] included. One that is
// to be looked at earlier already stays where it is, and moves when that time
// comes: most events put off what was going to happen if they had not come, and
// so cost nothing here. The caller holds the driver's mu.
func (a *agenda) set(d *driver, at clock.Instant) {
	a.mu.Lock()
	defer a.mu.Unlock()
	d.due = at
	switch {
	case at == core.Never:
		if d.place > 0 {
			heap.Remove(&a.heap, int(d.place)-1)
		}
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
	var due []*driver
	a.mu.Lock()
	now := a.clock.Now()
	for len(a.heap) > 0 && a.heap[0].at <= now {
		d := a.heap[0]
		if d.due > now {
			d.at = d.due
			heap.Fix(&a.heap, 0)
			continue
		}
		heap.Pop(&a.heap)
		due = append(due, d)
	}
	if len(a.heap) > 0 {
		a.arm()
	}
	a.mu.Unlock()
	for _, d := range due {
		a.crew.take(delivery{d: d, wake: true})
	}
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

package sim

import "time"

// never is later than every moment of a run.
const never = time.Duration(1<<63 - 1)

// eventKind says what an event of the queue is.
type eventKind uint8

const (
	arrive      eventKind = iota // a request at a store
	reply                        // an answer at a client
	wake                         // a driver's timer
	call                         // a function of a client's program
	faultBegins                  // of the plan
	faultEnds
	snapshot // a store's memory is remembered for a fault to come
	tidy     // stores drop what is idle
	phase    // the faults stop
	hook     // a function of the world
)

// event is what will happen.
type event struct {
	at    time.Duration
	kind  eventKind
	index int32 // of a message, fault or store
	life  uint32
	d     *driver
	c     *Client
	fn    func()
}

// queue is a heap of times, four below each; the events themselves lie still
// beside it, so that the heap has no pointer and moves cheaply.
type queue struct {
	heap []due
	slab []event
	free []int32
}

// due is when an event happens. The key orders events of one instant: a choice
// above, the order in which they were made beneath.
type due struct {
	at   time.Duration
	key  uint64
	slot int32
}

func (e *due) before(f *due) bool { return e.at < f.at || e.at == f.at && e.key < f.key }

func (q *queue) empty() bool { return len(q.heap) == 0 }

func (q *queue) push(e *event, key uint64) {
	var slot int32
	if n := len(q.free); n > 0 {
		slot = q.free[n-1]
		q.free = q.free[:n-1]
		q.slab[slot] = *e
	} else {
		slot = int32(len(q.slab))
		q.slab = append(q.slab, *e)
	}
	d := due{at: e.at, key: key, slot: slot}
	q.heap = append(q.heap, d)
	i := len(q.heap) - 1
	for i > 0 {
		up := (i - 1) / 4
		if !d.before(&q.heap[up]) {
			break
		}
		q.heap[i] = q.heap[up]
		i = up
	}
	q.heap[i] = d
}

func (q *queue) pop() event {
	slot := q.heap[0].slot
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap = q.heap[:n]
	i := 0
	for {
		first := 4*i + 1
		if first >= n {
			break
		}
		down := first
		for j := first + 1; j < min(first+4, n); j++ {
			if q.heap[j].before(&q.heap[down]) {
				down = j
			}
		}
		if !q.heap[down].before(&last) {
			break
		}
		q.heap[i] = q.heap[down]
		i = down
	}
	if n > 0 {
		q.heap[i] = last
	}
	e := q.slab[slot]
	if e.fn != nil {
		q.slab[slot].fn = nil // what it holds may be garbage from now on
	}
	q.free = append(q.free, slot)
	return e
}

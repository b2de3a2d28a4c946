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

// event is what will happen. The key orders events of one instant: a choice
// above, the order in which they were made beneath.
type event struct {
	at    time.Duration
	key   uint64
	kind  eventKind
	index int32 // of a message, fault or store
	life  uint32
	d     *driver
	c     *Client
	fn    func()
}

func (e *event) before(f *event) bool {
	if e.at != f.at {
		return e.at < f.at
	}
	return e.key < f.key
}

// queue is a binary heap.
type queue struct{ events []event }

func (q *queue) push(e event) {
	q.events = append(q.events, e)
	i := len(q.events) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !e.before(&q.events[up]) {
			break
		}
		q.events[i] = q.events[up]
		i = up
	}
	q.events[i] = e
}

func (q *queue) pop() event {
	top := q.events[0]
	n := len(q.events) - 1
	last := q.events[n]
	q.events[n] = event{}
	q.events = q.events[:n]
	if n == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= n {
			break
		}
		if down+1 < n && q.events[down+1].before(&q.events[down]) {
			down++
		}
		if !q.events[down].before(&last) {
			break
		}
		q.events[i] = q.events[down]
		i = down
	}
	q.events[i] = last
	return top
}

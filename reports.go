package quorum

import (
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
)

// reportAgain is how long a failing store is not reported again, so that an
// outage fills no log.
const reportAgain = time.Minute

// reports tells the observer what concerns stores rather than locks: of each
// store's failures the first, and then at most one in a while. That it worked
// in between changes nothing: a store that refuses to grant may well release.
type reports struct {
	observe func(Event)

	mu      sync.Mutex
	last    []clock.Instant // when a failure was told; 0 is never
	advised []bool
	twins   []bool
}

func newReports(observe func(Event), n int) *reports {
	return &reports{observe: observe, last: make([]clock.Instant, n), advised: make([]bool, n), twins: make([]bool, n)}
}

func (r *reports) tell(e Event) {
	if r.observe != nil {
		r.observe(e)
	}
}

// store hears the answer of one store, where somebody observes.
func (r *reports) store(now clock.Instant, i int, s Store, err error) {
	name := s.Name()
	switch OutcomeOf(err) {
	case OutcomeTwin:
		r.twin(i, name, err)
		return
	case OutcomeUnknown, OutcomeUndelivered, OutcomeMismatch:
	default:
		r.advise(i, s)
		return
	}
	r.mu.Lock()
	due := r.last[i] == 0 || now.Sub(r.last[i]) >= reportAgain
	if due {
		r.last[i] = max(now, 1)
	}
	r.mu.Unlock()
	if due {
		r.observe(Event{Kind: EventStoreFailed, Store: name, Err: err})
	}
}

// advise hears that a store works, and tells its advice the first time.
func (r *reports) advise(i int, s Store) {
	r.mu.Lock()
	first := !r.advised[i]
	r.advised[i] = true
	r.mu.Unlock()
	if !first {
		return
	}
	if who, ok := As[Adviser](s); ok {
		for _, text := range who.Advice() {
			r.observe(Event{Kind: EventAdvice, Store: s.Name(), Err: errors.New(text)})
		}
	}
}

// twin hears that a member is another one's server, and tells it once: that
// does not change until somebody changes the set.
func (r *reports) twin(i int, name string, err error) {
	r.mu.Lock()
	first := !r.twins[i]
	r.twins[i] = true
	r.mu.Unlock()
	if first {
		r.observe(Event{Kind: EventTwin, Store: name, Err: err})
	}
}

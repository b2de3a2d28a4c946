package quorum

import (
	"errors"
	"sync"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// health is what a client has learnt of the speed of a set's stores. It decides
// who is asked when and waited for how long, never what an answer counts.
type health struct {
	mu      sync.Mutex
	members int
	learnt  core.Health
}

func newHealth(members int) *health { return &health{members: members} }

func (h *health) sent(now clock.Instant, store int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.learnt.Sent(now, store)
}

func (h *health) ended(now clock.Instant, store int, took time.Duration, clear bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.learnt.Ended(now, store, took, clear)
}

func (h *health) pace(now clock.Instant) core.Pace {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.learnt.Pace(now, h.members)
}

// well reports whether the end of a call says that the store is well. What a
// request did wrong is no fault of the store's.
func well(o core.Outcome, err error) bool {
	switch o {
	case core.Unknown:
		return false
	case core.Undelivered:
		return errors.Is(err, ErrInvalidKey) || errors.Is(err, ErrInvalidTTL) || errors.Is(err, ErrUnsupported)
	}
	return true
}

//go:build unix

package acceptance

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Cold is stores to which no connection stands yet.
type Cold struct {
	// Open makes a locker whose clients are new. The set is declared new.
	Open func(options ...quorum.Option) *quorum.Locker
	// Slow has each connection that is made from now on stand so much later.
	Slow func(d time.Duration)
	// Keeps says that a client goes on with a connection that came too late for
	// the call that asked for it.
	Keeps bool
}

// Run demands that what a connection takes until it stands is never contention:
// within the limit of a call the first attempt gets the lock; beyond it the
// error says that there was no answer, and the store is not left out afterwards.
func (c Cold) Run(t *testing.T) {
	t.Helper()
	c.Slow(300 * time.Millisecond)
	l := c.Open()
	lease, err := l.TryAcquire(t.Context(), "slow")
	if err != nil {
		t.Fatalf("connections that stand after 300 ms: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if !c.Keeps {
		return
	}
	c.Slow(600 * time.Millisecond)
	l = c.Open(quorum.CallLimit(100 * time.Millisecond))
	lease, err = l.TryAcquire(t.Context(), "late")
	if !errors.Is(err, quorum.ErrNoQuorum) || errors.Is(err, quorum.ErrHeld) {
		t.Fatalf("connections that stand after 600 ms gave %v, %v; want ErrNoQuorum", lease, err)
	}
	// The lease counts the limit too, and may see its end before the call does.
	if text := err.Error(); !strings.Contains(text, "no answer within 100ms (CallLimit)") && !strings.Contains(text, "no answer in time") {
		t.Errorf("connections that stand after 600 ms: %v does not say that there was no answer in time", err)
	}
	voted := map[string]bool{}
	tries := 0
	Poll(t, 10*time.Second, "locks by connections that stand, and votes of every store", func() bool {
		tries++
		lease, err := l.TryAcquire(t.Context(), "later "+strconv.Itoa(tries)) // names ask the stores in different orders
		if errors.Is(err, quorum.ErrHeld) {
			t.Errorf("connections that do not stand yet are taken for contention: %v", err)
		}
		if err != nil {
			return false
		}
		defer func() { _ = lease.Release(t.Context()) }()
		all := true
		for _, v := range lease.Votes() {
			voted[v.Store] = voted[v.Store] || v.Outcome == quorum.OutcomeGranted
			all = all && voted[v.Store]
		}
		return all
	})
}

//go:build !race

// What the race detector adds to memory and time is not measured here.

package quorum_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
)

// willing is a store that grants everything and keeps nothing, so that what is
// measured is the library alone.
type willing struct{ name string }

func (w willing) Name() string                                { return w.name }
func (w willing) Limits() quorum.Limits                       { return quorum.Limits{Reach: quorum.ReachCluster} }
func (willing) Release(context.Context, quorum.Request) error { return nil }

func (willing) Acquire(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	return quorum.Grant{Token: max(r.Floor, 1), TTL: r.TTL}, nil
}

func (willing) Extend(_ context.Context, r quorum.Request) (quorum.Grant, error) {
	return quorum.Grant{Token: r.Floor, TTL: r.TTL}, nil
}

// TestHeldLeaseIsSmall measures what a held lease keeps in memory.
func TestHeldLeaseIsSmall(t *testing.T) {
	set, err := quorum.Combine(quorum.Consensus(), willing{"a"}, willing{"b"}, willing{"c"})
	if err != nil {
		t.Fatal(err)
	}
	// An hour, so that no renewal is under way, however slow the machine is.
	l, err := quorum.New(set, quorum.TTL(time.Hour), quorum.MaxTTL(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	const many, most = 20000, 750
	keys := make([]string, many)
	for i := range keys {
		keys[i] = fmt.Sprint("name ", i)
	}
	before, few := inUse(), runtime.NumGoroutine()
	leases := make([]*quorum.Lease, many)
	for i, key := range keys {
		if leases[i], err = l.Acquire(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // until those that made the calls have gone
		if runtime.NumGoroutine() <= few {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	each := (inUse() - before) / many
	t.Logf("%d bytes a lease", each)
	if each > most {
		t.Errorf("a held lease keeps %d bytes, want at most %d", each, most)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	runtime.KeepAlive(leases)
}

// inUse is how many bytes are reachable.
func inUse() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what pools kept
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// One process holds many leases by few goroutines, renews all in time and gives
// all back.
func TestManyLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 10_000
		c := newHoard(t, many)
		for _, s := range c.stores {
			s.takes.Store(int64(time.Millisecond))
		}
		time.Sleep(45 * time.Second)
		if n := c.renewed.Load(); n != 4*many {
			t.Errorf("%d renewals of %d leases in 45 s, want 4 of each", n, many)
		}
		if c.failed.Load()+c.late.Load()+c.ended.Load() > 0 {
			t.Errorf("%d renewals failed, %d were late, %d leases lost", c.failed.Load(), c.late.Load(), c.ended.Load())
		}
		time.Sleep(3 * time.Second) // between two bunches of renewals nothing is left but the timers' goroutines
		if n := runtime.NumGoroutine(); n > 100 {
			t.Errorf("%d goroutines while all rest", n)
		}
		c.most()
		began := time.Now()
		if err := c.l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		within(t, "Close", time.Since(began), 0, time.Second)
		if n := c.most(); n > 300 {
			t.Errorf("Close made %d calls to a store at a time", n)
		}
	})
}

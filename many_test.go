package quorum_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
)

// busy is a memory store that takes its time, counts the calls that are under way
// in it, and tells nobody anything.
type busy struct {
	quorum.Store
	takes atomic.Int64 // nanoseconds a call
	under atomic.Int64
	most  atomic.Int64
	stuck atomic.Bool // it answers no call that begins now
}

func (b *busy) Limits() quorum.Limits { return quorum.Limits{Reach: quorum.ReachProcess} }

func (b *busy) call(ctx context.Context) error {
	n := b.under.Add(1)
	defer b.under.Add(-1)
	for most := b.most.Load(); n > most && !b.most.CompareAndSwap(most, n); most = b.most.Load() {
	}
	if d := time.Duration(b.takes.Load()); d > 0 {
		time.Sleep(d)
	}
	if b.stuck.Load() {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (b *busy) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := b.call(ctx); err != nil {
		return quorum.Grant{}, err
	}
	return b.Store.Acquire(ctx, r)
}

func (b *busy) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if err := b.call(ctx); err != nil {
		return quorum.Grant{}, err
	}
	return b.Store.Extend(ctx, r)
}

func (b *busy) Release(ctx context.Context, r quorum.Request) error {
	if err := b.call(ctx); err != nil {
		return err
	}
	return b.Store.Release(ctx, r)
}

// hoard is a Locker of three such stores and many leases.
type hoard struct {
	stores                       []*busy
	l                            *quorum.Locker
	renewed, failed, late, ended atomic.Int64
}

func newHoard(t *testing.T, many int) *hoard {
	t.Helper()
	c := &hoard{}
	var members []quorum.Store
	for _, name := range []string{"a", "b", "c"} {
		s := &busy{Store: memstore.New(name, memstore.WithClock(clock.Go()))}
		c.stores, members = append(c.stores, s), append(members, s)
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	c.l, err = quorum.New(set, quorum.TTL(30*time.Second), quorum.Expiring(15*time.Second), quorum.WithClock(clock.Go()),
		quorum.Observe(func(e quorum.Event) {
			if count := map[quorum.EventKind]*atomic.Int64{
				quorum.EventRenewed: &c.renewed, quorum.EventRenewFailed: &c.failed, quorum.EventExpiring: &c.late, quorum.EventLost: &c.ended,
			}[e.Kind]; count != nil {
				count.Add(1)
			}
		}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range many {
		if _, err := c.l.Acquire(t.Context(), fmt.Sprint("lease ", i)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// most returns the most calls that were under way in a store since it was asked last.
func (c *hoard) most() int64 {
	var most int64
	for _, s := range c.stores {
		most = max(most, s.most.Swap(0))
	}
	return most
}

// Renewals that were all held up take turns: none waits for the others beyond
// its limit.
func TestManyRenewalsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const many = 1500
		c := newHoard(t, many) // at one instant, so that all are due at one
		for _, s := range c.stores {
			s.takes.Store(int64(100 * time.Millisecond))
		}
		c.most()
		time.Sleep(12 * time.Second)
		if n := c.most(); n > 1100 {
			t.Errorf("%d calls in a store at a time", n)
		}
		if n := c.renewed.Load(); n != many {
			t.Errorf("%d of %d renewed once", n, many)
		}
		// A store that hangs takes nobody's turn: the others are a quorum.
		c.stores[0].stuck.Store(true)
		time.Sleep(10 * time.Second)
		if n := c.renewed.Load(); n != 2*many {
			t.Errorf("%d of %d renewed while a store hangs", n-many, many)
		}
		// Those that wait for their turn end at their time.
		for _, s := range c.stores {
			s.stuck.Store(true)
		}
		time.Sleep(31 * time.Second)
		if n := c.ended.Load(); n != many {
			t.Errorf("%d of %d ended with their validity", n, many)
		}
		for _, s := range c.stores {
			s.stuck.Store(false)
		}
		if err := c.l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lease that lasts two seconds does not wait behind thousands of thirty.
func TestShortLeasesTakeTheirTurnsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newHoard(t, 5000)
		for _, s := range c.stores {
			s.takes.Store(int64(200 * time.Millisecond))
		}
		for i := range 12 {
			time.Sleep(50 * time.Millisecond)
			go func() {
				_, _ = c.l.Acquire(context.Background(), fmt.Sprint("short ", i), quorum.TTL(2*time.Second), quorum.Expiring(0))
			}()
		}
		time.Sleep(14 * time.Second)
		if renewed, lost := c.renewed.Load(), c.ended.Load(); renewed < 5000 || lost != 0 {
			t.Errorf("%d renewals, %d leases lost; want 5,000 at least and none", renewed, lost)
		}
		for _, s := range c.stores {
			s.takes.Store(0)
		}
		_ = c.l.Close(context.Background())
	})
}

// A warning that comes to those who wait for their turn gives them none.
func TestWarningsBeginNoRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newHoard(t, 6000) // they are due at 10 s and warned at 15 s
		for _, s := range c.stores {
			s.takes.Store(int64(900 * time.Millisecond))
		}
		c.most()
		time.Sleep(20 * time.Second)
		if most := c.most(); most > 700 {
			t.Errorf("%d calls at a time in a store, want about 512", most)
		}
		for _, s := range c.stores {
			s.takes.Store(0)
		}
		_ = c.l.Close(context.Background())
	})
}

// Two that close at once give back as one does.
func TestTwoClosesLeaveEveryPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newHoard(t, 300)
		for _, s := range c.stores {
			s.takes.Store(int64(100 * time.Millisecond))
		}
		start := time.Now()
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() { _ = c.l.Close(context.Background()) })
		}
		both.Wait()
		if n := quorum.PlacesOf(c.l); n != 0 {
			t.Errorf("%d places are taken after Close", n)
		}
		within(t, "closing", since(start), 0, time.Second)
	})
}

//go:build linux

package redisstore_test

import (
	"context"
	"net"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
	"github.com/quorumlock/quorum/storetest"
)

// link is the way to one node, which can be interrupted so that nobody is told.
type link struct {
	node  *testserver.RedisNode
	proxy *testserver.Proxy
	deaf  atomic.Pointer[string] // where connects go instead
}

// dial is a client's.
func (l *link) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	addr := l.proxy.Addr
	if deaf := l.deaf.Load(); deaf != nil {
		addr = *deaf
	}
	return new(net.Dialer).DialContext(ctx, network, addr)
}

// linked makes a set of n nodes behind links.
func linked(t *testing.T, n int, options redis.Options) (*acceptance.Set, []*link) {
	t.Helper()
	var links []*link
	var members []acceptance.Member
	for i := range n {
		node := testserver.Redis(t)
		l := &link{node: node, proxy: testserver.NewProxy(t, node.Addr)}
		mine := options
		mine.Addr, mine.Dialer = node.Addr, l.dial
		c := redis.NewClient(&mine)
		t.Cleanup(func() { _ = c.Close() })
		s, err := redisstore.New("node"+strconv.Itoa(i), c)
		if err != nil {
			t.Fatal(err)
		}
		links, members = append(links, l), append(members, acceptance.Member{Store: s})
	}
	return acceptance.Combine(t, members), links
}

// asOpened are the settings of a client that Opener makes.
var asOpened = redis.Options{MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: time.Second, DialerRetries: 1}

// holes are the ways in which a node swallows what it is sent.
var holes = map[string]func(t *testing.T, l *link) (end func()){
	"the process stands still": func(_ *testing.T, l *link) func() {
		l.node.Stall()
		return l.node.Resume
	},
	"packets are swallowed": func(_ *testing.T, l *link) func() {
		l.proxy.Silence()
		return l.proxy.Resume
	},
	"connects never end": func(t *testing.T, l *link) func() {
		deaf := testserver.Deaf(t)
		l.deaf.Store(&deaf)
		l.proxy.Cut()
		return func() { l.deaf.Store(nil) }
	},
}

// TestF115ABlackHoleCostsOneAcquisition: of five nodes one swallows what it is
// sent. The first acquisition that asks it finds that out long before the call's
// limit, no other waits for it, it is tried again seldom and beside what goes on,
// and has its vote again once it is back.
func TestF115ABlackHoleCostsOneAcquisition(t *testing.T) {
	for name, open := range holes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 2 * time.Second
			set, links := linked(t, 5, asOpened)
			l := set.Fresh(quorum.TTL(time.Minute), quorum.MaxTTL(time.Minute), quorum.CallLimit(limit))
			for range 30 { // what is usual
				acceptance.Cycle(t, l, "job")
			}
			hole := first(set, "job")
			start, end := time.Now(), open(t, links[hole])
			asked := func(news bool) int {
				return len(set.Spoil[hole].Log(func(c storetest.Call) bool {
					return c.At.After(start) && news == (c.Verb == storetest.VerbAcquire && c.Request.Kind == quorum.KindNew)
				}))
			}
			opened := time.Now()
			acceptance.Cycle(t, l, "job")
			if took := time.Since(opened); took >= limit {
				t.Errorf("the first took %v, as if it waited for the limit of %v", took, limit)
			}
			cycles := 0
			acceptance.Poll(t, time.Minute, "tries in the background", func() bool {
				lease := acceptance.Acquire(t, l, "job")
				cycles++
				if lease.Votes()[hole].Outcome == quorum.OutcomeGranted {
					t.Errorf("acquisition %d has a vote of the node that is away", cycles)
				}
				_ = lease.Release(t.Context())
				return asked(false) >= 3
			})
			// Where the machine is busy, others are late now and then, and it is asked in their place.
			if n := asked(true); n > 1+cycles/10 {
				t.Errorf("%d of %d acquisitions asked the node that is away for its vote, want the first alone", n, cycles+1)
			}
			if cycles < 20 {
				t.Errorf("%d acquisitions during three tries: want many, which wait for none", cycles)
			}

			before := asked(true)
			end()
			// What was swallowed and arrives now may hold "job" until its TTL.
			acceptance.Poll(t, time.Minute, "a vote of the node that is back", func() bool {
				cycles++
				lease := acceptance.Acquire(t, l, "name "+strconv.Itoa(cycles))
				defer func() { _ = lease.Release(t.Context()) }()
				return lease.Votes()[hole].Outcome == quorum.OutcomeGranted && asked(true) > before
			})
		})
	}
}

// TestF115AClientLeftAsItIsBoundsNothing: go-redis by its defaults heeds the end
// of a context only while it dials, and repeats dials and requests for many
// seconds. Acquire and Release do not wait for it: they leave the call to itself.
func TestF115AClientLeftAsItIsBoundsNothing(t *testing.T) {
	for name, open := range holes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const limit = 2 * time.Second
			set, links := linked(t, 3, redis.Options{})
			l := set.Fresh(quorum.TTL(time.Minute), quorum.MaxTTL(time.Minute), quorum.CallLimit(limit))
			for range 30 { // what is usual
				acceptance.Cycle(t, l, "job")
			}
			hole := first(set, "job")
			held := acceptance.Acquire(t, l, "held")
			acceptance.Await(t, "a vote of each node", func() bool { return set.Holders(l, "held") == 3 })
			open(t, links[hole])
			start := time.Now()
			acceptance.Cycle(t, l, "job")
			if err := held.Release(t.Context()); err != nil {
				t.Errorf("a release that two of three nodes confirmed: %v", err)
			}
			if took := time.Since(start); took >= limit {
				t.Errorf("to acquire and release took %v, with calls that may take %v", took, limit)
			}
			acceptance.Await(t, "time for a call to heed its limit", func() bool { return time.Since(start) > limit*5/4 })
			abandoned := func(c storetest.Call) bool { return c.At.After(start) && (!c.Done || c.Took > limit*5/4) }
			if name != "connects never end" && len(set.Spoil[hole].Log(abandoned)) == 0 {
				t.Error("no call was left to itself: the client heeds limits, and this shows nothing")
			}
		})
	}
}

// first says which member a name asks first.
func first(set *acceptance.Set, key string) int {
	best, at := -1, time.Time{}
	for i, sp := range set.Spoil {
		calls := sp.Log(func(c storetest.Call) bool { return c.Verb == storetest.VerbAcquire && c.Request.Key == key })
		if len(calls) > 0 && (best < 0 || calls[0].At.Before(at)) {
			best, at = i, calls[0].At
		}
	}
	return best
}

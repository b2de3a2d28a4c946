package quorum_test

import (
	"context"

	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// bed is a set of memory stores, each behind a wrapper that spoils its calls,
// in a bubble where time moves only when everybody waits.
type bed struct {
	t      *testing.T
	set    *quorum.CombinedStore
	spoil  []*storetest.Spoiled
	memory []*memstore.Store

	mu     sync.Mutex
	events []quorum.Event
}

// inBubble runs f with a bed of n stores that answer at once. At the end
// everything must have ended by itself: a goroutine left over fails the test.
func inBubble(t *testing.T, n int, f func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newBed(t, n, quorum.Consensus())) })
}

func newBed(t *testing.T, n int, s quorum.Strategy, options ...memstore.Option) *bed {
	t.Helper()
	b := &bed{t: t}
	var members []quorum.Store
	for i := range n {
		m := memstore.New(string(rune('a'+i)), append(options, memstore.WithClock(clock.Go()))...)
		sp := storetest.Spoil(m)
		t.Cleanup(sp.Close)
		b.memory = append(b.memory, m)
		b.spoil = append(b.spoil, sp)
		members = append(members, sp)
	}
	set, err := quorum.Combine(s, members...)
	if err != nil {
		t.Fatal(err)
	}
	b.set = set
	return b
}

// locker makes a Locker that is closed at the end.
func (b *bed) locker(options ...quorum.Option) *quorum.Locker {
	b.t.Helper()
	l, err := quorum.New(b.set, append([]quorum.Option{
		quorum.WithClock(clock.Go()), quorum.Observe(b.observe),
	}, options...)...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = l.Close(context.Background()) })
	return l
}

func (b *bed) observe(e quorum.Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
}

// seen returns the events of a kind so far.
func (b *bed) seen(kind quorum.EventKind) []quorum.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []quorum.Event
	for _, e := range b.events {
		if e.Kind == kind {
			out = append(out, e)
		}
	}
	return out
}

// ask lists the stores in the order in which a key asks them.
func (b *bed) ask(key string) []int { return quorum.AskOrderOf(b.set, key) }

// settle lets everything that is under way end.
func (b *bed) settle() {
	synctest.Wait()
	time.Sleep(500 * time.Millisecond)
	synctest.Wait()
}

// holders says who holds a key in store i.
func (b *bed) holders(i int, key string) []quorum.Holder {
	b.t.Helper()
	state, err := b.memory[i].Inspect(context.Background(), b.request(key))
	if err != nil {
		b.t.Fatalf("store %d cannot be inspected: %v", i, err)
	}
	return state.Holders
}

// held returns in how many stores anybody holds a key.
func (b *bed) held(key string) int {
	n := 0
	for i := range b.memory {
		if len(b.holders(i, key)) > 0 {
			n++
		}
	}
	return n
}

// checkEmpty fails when anybody holds a key anywhere: contract 12.
func (b *bed) checkEmpty(key string) {
	b.t.Helper()
	for i := range b.memory {
		if h := b.holders(i, key); len(h) > 0 {
			b.t.Errorf("store %d still holds %q for %+v", i, key, h)
		}
	}
}

// calls counts the calls of the verbs at all stores.
func (b *bed) calls(verbs ...storetest.Verb) int {
	n := 0
	for _, sp := range b.spoil {
		n += len(sp.Log(storetest.Verbs(verbs...)))
	}
	return n
}

// must acquires or fails the test.
func must(t *testing.T, l *quorum.Locker, key string, options ...quorum.Option) *quorum.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), key, options...)
	if err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return lease
}

// rival takes a key in the stores given, as another client would, for ttl.
func (b *bed) rival(key string, ttl time.Duration, stores ...int) {
	b.t.Helper()
	for _, i := range stores {
		r := b.request(key)
		r.TTL, r.Owner.ID[0], r.Label = ttl, byte(100+i), "a rival"
		if _, err := b.memory[i].Acquire(context.Background(), r); err != nil {
			b.t.Fatalf("the rival did not get %q in store %d: %v", key, i, err)
		}
	}
}

// request is a bare request of the bed's set, with the default MaxTTL.
func (b *bed) request(key string) quorum.Request {
	return quorum.Request{
		Key: key, MaxTTL: time.Minute, Set: quorum.FingerprintOf(b.set, time.Minute), TTL: time.Second, Limit: time.Second,
	}
}

func within(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s took %v, want %v to %v", what, got, low, high)
	}
}

func since(start time.Time) time.Duration { return time.Since(start) }

// jumping is a clock that can go ahead of the timers, as one that counts the
// time a machine sleeps.
type jumping struct {
	start time.Time
	ahead atomic.Int64
}

func (c *jumping) Now() clock.Instant {
	return clock.Instant(time.Since(c.start)).Add(time.Duration(c.ahead.Load()))
}

func (c *jumping) jump(d time.Duration) { c.ahead.Add(int64(d)) }

package redisstore_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// bundles is a server on which calls can be made to leave together.
type bundles struct {
	t      *testing.T
	node   *testserver.RedisNode
	client *redis.Client
	store  *redisstore.Store
	r      quorum.Request
}

func newBundles(t *testing.T) *bundles {
	node := testserver.Redis(t)
	c := redis.NewClient(&redis.Options{
		Addr: node.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: time.Minute, ReadTimeout: time.Minute,
	})
	t.Cleanup(func() { _ = c.Close() })
	b := &bundles{t: t, node: node, client: c, store: store(t, c), r: ask("", owner())}
	b.r.TTL, b.r.MaxTTL, b.r.Limit = time.Minute, time.Minute, 30*time.Second
	declareNewFor(t, b.store, b.r)
	return b
}

func (b *bundles) named(name string) quorum.Request {
	r := b.r
	r.Key = name
	return r
}

// together makes calls that share a round trip: while the server hangs, the
// lanes are taken and the calls wait.
func (b *bundles) together(calls ...func()) {
	b.t.Helper()
	b.node.Stall()
	var all sync.WaitGroup
	for i := range redisstore.LaneCount {
		all.Go(func() { _, _ = b.store.Inspect(b.t.Context(), b.named(fmt.Sprint("lane ", i))) })
		await(b.t, "a lane to be taken", func() bool { return redisstore.Busy(b.store) == i+1 })
	}
	for i, call := range calls {
		all.Go(call)
		await(b.t, "a call to wait", func() bool { return redisstore.Waiting(b.store) >= i+1 })
	}
	b.node.Resume()
	all.Wait()
}

// TestABundleAnswersEachOfItsCalls: usual calls by one script, and by themselves
// those that are not.
func TestABundleAnswersEachOfItsCalls(t *testing.T) {
	b := newBundles(t)
	other := b.named("held")
	other.Owner = owner()
	mustAcquire(t, b.store, other)
	mine := b.named("mine")
	first := mustAcquire(t, b.store, mine)
	var mu sync.Mutex // two lanes send at once
	var sent [][]string
	b.client.AddHook(before(func(names ...string) {
		mu.Lock()
		defer mu.Unlock()
		if names[0] == "evalsha" {
			sent = append(sent, names)
		}
	}))
	var held, released, second error
	var got, again, fresh quorum.Grant
	b.together(
		func() { _, held = b.store.Acquire(t.Context(), b.named("held")) },
		func() { released = b.store.Release(t.Context(), mine) },
		func() { next := mine; next.Owner = owner(); again, _ = b.store.Acquire(t.Context(), next) },
		func() { got, _ = b.store.Extend(t.Context(), other) },
		func() { fresh, _ = b.store.Acquire(t.Context(), b.named("free")) },
		func() { late := b.named("free"); late.Owner = owner(); _, second = b.store.Acquire(t.Context(), late) },
	)
	wantOutcome(t, held, quorum.OutcomeContended)
	wantOutcome(t, second, quorum.OutcomeContended)
	if released != nil || again.Token != first.Token+1 || again.Previous != quorum.PreviousReleased {
		t.Errorf("a release: %v; an acquire of the same name behind it: %+v, want token %d", released, again, first.Token+1)
	}
	if got.Token == 0 || fresh.Token == 0 || fresh.Previous != quorum.PreviousUnknown {
		t.Errorf("extended %+v, fresh %+v", got, fresh)
	}
	trips := sent[redisstore.LaneCount:]
	if len(trips) != 2 || len(trips[0]) != 1 || len(trips[1]) != 3 {
		t.Errorf("sent %v, want one script for all, then one each for the held name and for those met twice", trips)
	}
}

// TestARefusalOfOneSparesItsBundle: in a full memory leases are still kept and
// given back, and a name that a user may not touch is that call's own trouble.
func TestARefusalOfOneSparesItsBundle(t *testing.T) {
	b := newBundles(t)
	mustAcquire(t, b.store, b.named("goes"))
	mustAcquire(t, b.store, b.named("stays"))
	check := func(t *testing.T, key, code string) {
		var goes, stays, comes error
		b.together(
			func() { _, comes = b.store.Acquire(t.Context(), b.named(key)) },
			func() { goes = b.store.Release(t.Context(), b.named("goes")) },
			func() { _, stays = b.store.Extend(t.Context(), b.named("stays")) },
		)
		if goes != nil || stays != nil {
			t.Errorf("release: %v; extend: %v", goes, stays)
		}
		wantOutcome(t, comes, quorum.OutcomeUndelivered)
		if comes == nil || !redis.HasErrorPrefix(unwrapped(comes), code) {
			t.Errorf("acquire of %q: %v, want %s", key, comes, code)
		}
	}
	t.Run("memory is full", func(t *testing.T) {
		b.config(t, "maxmemory", "1")
		defer b.config(t, "maxmemory", "0")
		check(t, "more", "OOM")
	})
	mustAcquire(t, b.store, b.named("goes"))
	t.Run("a name is forbidden", func(t *testing.T) {
		b.acl(t, "~{quorum}:record", "~{quorum}:*:goes", "~{quorum}:*:stays")
		defer b.acl(t, "~*")
		check(t, "not mine", "NOPERM")
	})
}

func (b *bundles) config(t *testing.T, name, value string) {
	t.Helper()
	if err := b.client.ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
}

// acl sets which keys the user may touch.
func (b *bundles) acl(t *testing.T, patterns ...string) {
	t.Helper()
	args := []any{"acl", "setuser", "default", "resetkeys"}
	for _, p := range patterns {
		args = append(args, p)
	}
	if err := b.client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// unwrapped is the server's own error.
func unwrapped(err error) error {
	var last redis.Error
	errors.As(err, &last)
	return last
}

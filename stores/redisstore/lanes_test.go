package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// TestCallsShareRoundTrips fills the lanes to a server that hangs, so that all
// that comes then must leave together.
func TestCallsShareRoundTrips(t *testing.T) {
	node := testserver.Redis(t)
	c := redis.NewClient(&redis.Options{
		Addr: node.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: time.Minute, ReadTimeout: time.Minute,
	})
	t.Cleanup(func() { _ = c.Close() })
	s := store(t, c)
	r := ask("", owner())
	r.TTL, r.MaxTTL, r.Limit = time.Minute, time.Minute, 30*time.Second
	declareNewFor(t, s, r)
	var trips atomic.Int64
	c.AddHook(before(func(names ...string) {
		if names[0] == "evalsha" {
			trips.Add(1)
		}
	}))
	node.Stall()
	var calls sync.WaitGroup
	acquire := func(i int) {
		calls.Go(func() {
			mine := r
			mine.Key, mine.Owner = fmt.Sprint("name ", i), owner()
			if _, err := s.Acquire(t.Context(), mine); err != nil {
				t.Errorf("%s: %v", mine.Key, err)
			}
		})
	}
	const lanes, more = redisstore.LaneCount, 100
	for i := range lanes {
		acquire(i)
		await(t, "a lane to be taken", func() bool { return trips.Load() == int64(i+1) })
	}
	for i := range more {
		acquire(lanes + i)
	}
	await(t, "the others to wait", func() bool { return redisstore.Waiting(s) == more })

	// One whose context ends meanwhile provably never left, and leaves the line.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	mine := r
	mine.Key = "late"
	_, err := s.Acquire(ctx, mine)
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !errors.Is(err, context.DeadlineExceeded) || redisstore.Waiting(s) != more {
		t.Errorf("%v, and %d wait", err, redisstore.Waiting(s))
	}
	node.Resume()
	calls.Wait()
	if n := trips.Load(); n != lanes+1 {
		t.Errorf("%d round trips for %d calls, want %d", n, lanes+more, lanes+1)
	}
	if n := c.Exists(t.Context(), "{quorum}:vote:late").Val(); n != 0 {
		t.Error("a call that was given up was made")
	}
}

// TestABatchThatFindsNoScripts: each call of it is made again, once, by its own
// caller.
func TestABatchThatFindsNoScripts(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	r := ask("k", owner())
	declareNewFor(t, s, r)
	for range 5 {
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		for i := range 50 {
			calls.Go(func() {
				mine := r
				mine.Owner = owner()
				if mine.Key = fmt.Sprint("k ", i); i%2 == 0 {
					mine.Key, mine.Mode = "k", quorum.ModeShared
				}
				if _, err := s.Acquire(t.Context(), mine); err != nil {
					t.Error(err)
				}
				if err := s.Release(t.Context(), mine); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	if state, err := s.Inspect(t.Context(), r); err != nil || len(state.Holders) != 0 {
		t.Errorf("left: %+v %v", state, err)
	}
}

// TestAHangingServerHoldsNobodyBeyondItsTime: a trip lasts as long as the call
// whose time is over last, and the others do not wait for it.
func TestAHangingServerHoldsNobodyBeyondItsTime(t *testing.T) {
	node := testserver.Redis(t)
	s := store(t, client(t, node.Addr))
	declareNew(t, s)
	node.Stall()
	defer node.Resume()
	var calls sync.WaitGroup
	for i := range 40 {
		calls.Go(func() {
			r := ask(fmt.Sprint("name ", i), owner())
			r.Limit = time.Minute
			limit := time.Duration(1+i%4) * 100 * time.Millisecond
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			_, err := s.Acquire(ctx, r)
			if o := quorum.OutcomeOf(err); o != quorum.OutcomeUnknown && o != quorum.OutcomeUndelivered {
				t.Errorf("%v", err)
			}
		})
	}
	calls.Wait() // all return, though the server never answers
	if n := redisstore.Waiting(s); n != 0 {
		t.Errorf("%d calls still wait", n)
	}
}

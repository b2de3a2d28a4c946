package redisstore_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// faulty is a store that is warm, and whose client calls fault before each
// script from then on.
func faulty(t *testing.T, fault func()) *redisstore.Store {
	t.Helper()
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	declareNew(t, s)
	mustAcquire(t, s, ask("warm", owner()))
	c.AddHook(before(func(names ...string) {
		if names[0] == "evalsha" {
			fault()
		}
	}))
	return s
}

// begin begins an Acquire, and says by ended how it ended.
func begin(t *testing.T, s *redisstore.Store, name string, limit time.Duration, ended func(error)) {
	t.Helper()
	r := ask(name, owner())
	r.Limit = limit
	if !s.Begin(quorum.NewCall(t.Context(), quorum.VerbAcquire, r, func(_ quorum.Grant, err error) { ended(err) })) {
		t.Fatal("not begun")
	}
}

// TestCallsBehindAClientThatHangsDoNotGather: no lane comes back, so whoever comes
// next sends away who is late.
func TestCallsBehindAClientThatHangsDoNotGather(t *testing.T) {
	free := make(chan struct{})
	var trips atomic.Int64
	s := faulty(t, func() { trips.Add(1); <-free })
	const many = 50
	var all, late atomic.Int64
	count := func(err error) {
		if all.Add(1); quorum.OutcomeOf(err) == quorum.OutcomeUndelivered {
			late.Add(1)
		}
	}
	for i := range redisstore.LaneCount {
		begin(t, s, fmt.Sprint("lane ", i), 20*time.Second, count)
		await(t, "a lane to be taken", func() bool { return trips.Load() == int64(i+1) })
	}
	for i := range many {
		begin(t, s, fmt.Sprint("k ", i), 50*time.Millisecond, count)
	}
	last := 0
	await(t, "those that wait to be late", func() bool {
		begin(t, s, fmt.Sprint("more ", last), 20*time.Second, count)
		last++
		return late.Load() >= many
	})
	close(free)
	await(t, "all to end", func() bool { return all.Load() == int64(redisstore.LaneCount+many+last) })
}

// TestAHookThatPanics is an unknown outcome of all calls of the trip.
func TestAHookThatPanics(t *testing.T) {
	var panics atomic.Bool
	s := faulty(t, func() {
		if panics.CompareAndSwap(true, false) {
			panic("broken")
		}
	})
	panics.Store(true)
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUnknown)
	if !strings.Contains(err.Error(), "the client panicked: broken") {
		t.Errorf("%v, want one that says what panicked", err)
	}
	mustAcquire(t, s, ask("k", owner()))
}

// TestAHookThatEndsItsGoroutine, as t.FailNow does, takes no lane along.
func TestAHookThatEndsItsGoroutine(t *testing.T) {
	var ends atomic.Int64
	s := faulty(t, func() {
		if ends.Add(-1) >= 0 {
			runtime.Goexit()
		}
	})
	ends.Store(redisstore.LaneCount)
	for i := range redisstore.LaneCount {
		_, err := s.Acquire(t.Context(), ask(fmt.Sprint("k ", i), owner()))
		wantOutcome(t, err, quorum.OutcomeUnknown)
	}
	for i := range 5 {
		mustAcquire(t, s, ask(fmt.Sprint("k ", i), owner()))
	}
}

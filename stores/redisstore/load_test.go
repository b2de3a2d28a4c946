package redisstore_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
)

// before is a hook of a client that calls itself before each command or
// pipeline is sent.
type before func(names ...string)

func (before) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (b before) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		b(cmd.Name())
		return next(ctx, cmd)
	}
}

func (b before) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var names []string
		for _, c := range cmds {
			names = append(names, c.Name())
		}
		b(names...)
		return next(ctx, cmds)
	}
}

// TestNoTextOfAnEarlierLifeIsLoaded restarts the server between the reading of
// its run id and the loading of the scripts that bear it. Had they come into
// the new process, its calls would work, and its forgetting would be unseen.
func TestNoTextOfAnEarlierLifeIsLoaded(t *testing.T) {
	node := testserver.Redis(t)
	c := client(t, node.Addr)
	restarted := false
	c.AddHook(before(func(names ...string) {
		if names[0] == "script" && !restarted {
			restarted = true
			node.Restart()
		}
	}))
	s := store(t, c)
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !restarted {
		t.Fatal("no scripts were loaded")
	}
	info, err := client(t, node.Addr).InfoMap(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	if n := info["Memory"]["number_of_cached_scripts"]; n != "0" {
		t.Errorf("%s scripts of the earlier life are in the new process", n)
	}
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
}

// TestOneCommandAVerb counts what leaves for a key that is known.
func TestOneCommandAVerb(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	declareNew(t, s)
	r := ask("k", owner())
	mustAcquire(t, s, r)
	mustRelease(t, s, r)
	var sent []string
	c.AddHook(before(func(names ...string) { sent = append(sent, names...) }))
	mustAcquire(t, s, r)
	if _, err := s.Extend(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, r)
	if len(sent) != 3 || sent[0] != "evalsha" || sent[1] != "evalsha" || sent[2] != "evalsha" {
		t.Errorf("acquire, extend and release sent %q, want one evalsha each", sent)
	}
}

// TestOtherSetsAreTold shows that two sets on one server do not share scripts,
// and that the second is refused.
func TestOtherSetsAreTold(t *testing.T) {
	s := store(t, client(t, testserver.Redis(t).Addr))
	declareNew(t, s)
	mine, foreign := ask("k", owner()), ask("k", owner())
	foreign.Set = 0xbad
	for range 3 {
		_, err := s.Acquire(t.Context(), foreign)
		wantOutcome(t, err, quorum.OutcomeMismatch)
		mustAcquire(t, s, mine)
		mustRelease(t, s, mine)
	}
}

// TestALoadOutlivesItsCall: a call may last for less than a connection and the
// scripts take. Given up with the call, they would never be there.
func TestALoadOutlivesItsCall(t *testing.T) {
	node := testserver.Redis(t)
	declareNew(t, store(t, client(t, node.Addr)))
	p := testserver.NewProxy(t, node.Addr)
	p.Cold(1500 * time.Millisecond)
	s := store(t, client(t, p.Addr))
	acquire := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Acquire(ctx, brief("k", owner()))
		return err
	}
	wantOutcome(t, acquire(), quorum.OutcomeUndelivered)
	await(t, "a call by what the first began", func() bool { return acquire() == nil })
}

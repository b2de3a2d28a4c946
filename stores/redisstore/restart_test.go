package redisstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// leave takes a store out of quarantine as a lone one leaves, once its time is
// over.
func leave(t *testing.T, s *redisstore.Store) {
	t.Helper()
	var step quorum.Step
	await(t, "the end of the quarantine", func() bool {
		var err error
		step, err = s.ReadStep(t.Context(), brief("", quorum.Owner{}))
		return err == nil && step.Over
	})
	o := quorum.Raise{Quarantine: step.Quarantine, Step: step.Step, Alone: true}
	if err := s.Raise(t.Context(), brief("", quorum.Owner{}), o); err != nil {
		t.Fatal(err)
	}
}

func TestF068ScriptFlush(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	declareNew(t, s)
	flush := func() {
		if err := c.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		r := ask("k", owner())
		r.Mode = quorum.Mode(i % 2)
		flush()
		mustAcquire(t, s, r)
		flush()
		if _, err := s.Extend(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		flush()
		if _, err := s.Inspect(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		flush()
		mustRelease(t, s, r)
		if n := c.Exists(t.Context(), "{quorum}:vote:k", "{quorum}:read:k", "{quorum}:ends:k").Val(); n != 0 {
			t.Fatalf("%d keys of the lock are left after its release", n)
		}
	}
}

func TestR46RestartedNodeIsKeptOut(t *testing.T) {
	for name, config := range map[string][]string{
		"without persistence": nil,
		"AOF every second":    {"appendonly yes", "appendfsync everysec"},
		"AOF always":          {"appendonly yes", "appendfsync always"},
	} {
		t.Run(name, func(t *testing.T) {
			node := testserver.Redis(t, testserver.RedisConfig(config...))
			s := store(t, client(t, node.Addr))
			declareNew(t, s)
			held := brief("k", owner())
			first := mustAcquire(t, s, held)
			node.Restart()
			var err error
			await(t, "the client to reach the server again", func() bool {
				_, err = s.Acquire(t.Context(), brief("k", owner()))
				return quorum.OutcomeOf(err) == quorum.OutcomeQuarantined
			})
			refused := (*quorum.RefusedError)(nil)
			if !errors.As(err, &refused) || refused.Left <= 0 || refused.Left > briefMaxTTL {
				t.Errorf("refusal: %+v", refused)
			}
			_, err = s.Extend(t.Context(), held)
			switch want := config != nil; {
			case want && err != nil && quorum.OutcomeOf(err) != quorum.OutcomeNotHeld: // everysec may have lost it
				t.Errorf("extend after a restart with AOF: %v", err)
			case !want:
				wantOutcome(t, err, quorum.OutcomeNotHeld)
			}
			leave(t, s)
			next := brief("k", owner())
			var g quorum.Grant
			await(t, "the old vote to end", func() bool {
				g, err = s.Acquire(t.Context(), next)
				return err == nil
			})
			if g.Token <= first.Token {
				t.Errorf("token %d after a restart, %d before", g.Token, first.Token)
			}
			if g.Server == first.Server {
				t.Error("the restarted server has its old identity")
			}
		})
	}
}

// TestR46GuardIsWhatKeepsItOut shows that the test above can fail.
func TestR46GuardIsWhatKeepsItOut(t *testing.T) {
	node := testserver.Redis(t)
	s := store(t, client(t, node.Addr), redisstore.UnsafeNoGuard())
	if s.Limits().Forgets {
		t.Error("an unguarded store says that it forgets, and would wait for what never comes")
	}
	mustAcquire(t, s, ask("k", owner()))
	node.Restart()
	await(t, "a second holder", func() bool {
		_, err := s.Acquire(t.Context(), brief("k", owner()))
		return err == nil
	})
}

func TestR46ThreeNodesOneRestarts(t *testing.T) {
	for _, guard := range []bool{true, false} {
		t.Run(fmt.Sprintf("guard=%v", guard), func(t *testing.T) {
			var nodes []*testserver.RedisNode
			var stores []*redisstore.Store
			for range 3 {
				node := testserver.Redis(t)
				var options []redisstore.Option
				if !guard {
					options = append(options, redisstore.UnsafeNoGuard())
				}
				s := store(t, client(t, node.Addr), options...)
				if guard {
					declareNew(t, s)
				}
				nodes, stores = append(nodes, node), append(stores, s)
			}
			a := brief("k", owner())
			mustAcquire(t, stores[0], a)
			mustAcquire(t, stores[1], a)
			nodes[1].RestartEmpty()
			rival, votes := brief("k", owner()), 0
			await(t, "the client to reach the server again", func() bool {
				_, err := stores[1].Acquire(t.Context(), rival)
				if err == nil {
					votes++
				}
				return err == nil || quorum.OutcomeOf(err) == quorum.OutcomeQuarantined
			})
			mustAcquire(t, stores[2], rival)
			if votes++; (votes < 2) != guard {
				t.Errorf("the rival has %d votes of 3 beside a holder of 2", votes)
			}
		})
	}
}

func TestFlushedServerIsKeptOut(t *testing.T) {
	node, clock := stoppedRedis(t)
	c := client(t, node.Addr)
	s := store(t, c)
	declareNew(t, s)
	token := mustAcquire(t, s, brief("k", owner())).Token
	quarantines := map[string]bool{}
	for range 2 { // two under one run id: the second is another quarantine
		clock.Advance(time.Millisecond)
		if err := c.FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		_, err := s.Acquire(t.Context(), brief("k", owner()))
		wantOutcome(t, err, quorum.OutcomeQuarantined)
		step, err := s.ReadStep(t.Context(), brief("", quorum.Owner{}))
		if err != nil {
			t.Fatal(err)
		}
		quarantines[step.Quarantine] = true
	}
	if len(quarantines) != 2 {
		t.Fatalf("two FLUSHALLs gave the quarantines %v", quarantines)
	}
	for name := range quarantines {
		// One of the two is over and the other's time is not.
		o := quorum.Raise{Quarantine: name, Step: 1 << 26}
		err := s.Raise(t.Context(), brief("", quorum.Owner{}), o)
		wantOutcome(t, err, quorum.OutcomeQuarantined)
	}
	clock.Advance(briefMaxTTL)
	leave(t, s)
	for name := range quarantines {
		o := quorum.Raise{Quarantine: name, Step: 1 << 20}
		err := s.Raise(t.Context(), brief("", quorum.Owner{}), o)
		wantOutcome(t, err, quorum.OutcomeNotHeld) // a late raise
	}
	if next := mustAcquire(t, s, brief("k", owner())).Token; next <= token {
		t.Errorf("token %d after FLUSHALL, %d before", next, token)
	}
}

func TestLateRaiseAfterRestartIsRefused(t *testing.T) {
	node := testserver.Redis(t, testserver.RedisConfig("appendonly yes", "appendfsync always"))
	s := store(t, client(t, node.Addr))
	r := brief("", quorum.Owner{})
	before, err := s.ReadStep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	node.Restart()
	var after quorum.Step
	await(t, "another quarantine", func() bool {
		after, err = s.ReadStep(t.Context(), r)
		return err == nil && after.Over
	})
	// Also one of an earlier life that would have ended at the same moment.
	_, end, _ := strings.Cut(after.Quarantine, "@")
	twin := before.Server + "@" + end
	for _, late := range []string{before.Quarantine, twin} {
		err = s.Raise(t.Context(), r, quorum.Raise{Quarantine: late, Step: 5_000_000})
		wantOutcome(t, err, quorum.OutcomeQuarantined)
	}
}

func TestF181PromotedReplica(t *testing.T) {
	primary := testserver.Redis(t)
	replica := testserver.Redis(t, testserver.ReplicaOf(primary))
	p, q := store(t, client(t, primary.Addr)), store(t, client(t, replica.Addr))
	declareNew(t, p)
	token := mustAcquire(t, p, brief("k", owner())).Token
	c := client(t, replica.Addr)
	await(t, "replication", func() bool { return c.Exists(t.Context(), "{quorum}:vote:k").Val() == 1 })

	_, err := q.Acquire(t.Context(), brief("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !redis.HasErrorPrefix(errors.Unwrap(errors.Unwrap(errors.Unwrap(err))), "READONLY") && !redis.IsReadOnlyError(err) {
		t.Errorf("a replica answered %v, want READONLY", err)
	}
	if err := c.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	_, err = q.Acquire(t.Context(), brief("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	leave(t, q)
	var g quorum.Grant
	await(t, "the old vote to end", func() bool {
		g, err = q.Acquire(t.Context(), brief("k", owner()))
		return err == nil
	})
	if g.Token <= token {
		t.Errorf("token %d after the promotion, %d before", g.Token, token)
	}
}

// TestPrimaryThatWasAReplicaIsKeptOut is about a server that keeps its process,
// its scripts and a record with its own run id, and may have lost votes to the
// server that it followed for a while.
func TestPrimaryThatWasAReplicaIsKeptOut(t *testing.T) {
	first := testserver.Redis(t)
	second := testserver.Redis(t, testserver.ReplicaOf(first))
	c, d := client(t, first.Addr), client(t, second.Addr)
	s := store(t, c)
	declareNew(t, s)
	mustAcquire(t, s, brief("k", owner()))
	await(t, "replication", func() bool { return d.Exists(t.Context(), "{quorum}:vote:k").Val() == 1 })
	if err := d.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	host, port := "127.0.0.1", second.Addr[len("127.0.0.1:"):]
	if err := c.ReplicaOf(t.Context(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	await(t, "READONLY", func() bool {
		_, err := s.Acquire(t.Context(), brief("k", owner()))
		return redis.IsReadOnlyError(err)
	})
	await(t, "the copy of the second", func() bool {
		return c.Get(t.Context(), "{quorum}:record").Err() == nil
	})
	if err := c.ReplicaOf(t.Context(), "NO", "ONE").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Acquire(t.Context(), brief("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
}

func TestSentinelClientFollowsThePrimary(t *testing.T) {
	primary := testserver.Redis(t)
	replica := testserver.Redis(t, testserver.ReplicaOf(primary))
	sentinel := testserver.Redis(t, testserver.Sentinel("main", primary, 1, 500*time.Millisecond))
	c := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: "main", SentinelAddrs: []string{sentinel.Addr},
		MaxRetries: -1, ContextTimeoutEnabled: true, DialTimeout: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = c.Close() })
	s := store(t, c)
	if s.Limits().Doubles {
		t.Error("a failover client without retries is taken for one that sends twice")
	}
	declareNew(t, s)
	token := mustAcquire(t, s, brief("k", owner())).Token
	watch := client(t, sentinel.Addr)
	await(t, "the sentinel to know the replica", func() bool {
		info, err := watch.Info(t.Context(), "sentinel").Result()
		return err == nil && contains(info, "slaves=1")
	})
	d := client(t, replica.Addr)
	await(t, "replication", func() bool { return d.Exists(t.Context(), "{quorum}:vote:k").Val() == 1 })
	primary.Stop()
	await(t, "the promotion", func() bool {
		_, err := s.Acquire(t.Context(), brief("k", owner()))
		return quorum.OutcomeOf(err) == quorum.OutcomeQuarantined
	})
	leave(t, s)
	if g := mustAcquire(t, s, brief("other", owner())); g.Token <= token {
		t.Errorf("token %d after the fail-over, %d before", g.Token, token)
	}
}

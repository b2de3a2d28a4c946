package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

func TestR59PrefixesDoNotMeet(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	for _, prefix := range []string{"a", "a:vote", "quorum"} {
		s := store(t, c, redisstore.Prefix(prefix))
		declareNew(t, s) // each has a record of its own
		for _, key := range []string{"k", "vote:k", ":vote:k", "}:vote:k"} {
			mustAcquire(t, s, ask(key, owner()))
		}
	}
}

// TestF178KeysOfANameShareASlot looks at every key that the store leaves, for
// names with any braces.
func TestF178KeysOfANameShareASlot(t *testing.T) {
	node := testserver.Redis(t)
	c := client(t, node.Addr)
	nodeOfCluster := client(t, testserver.Redis(t, testserver.RedisConfig("cluster-enabled yes")).Addr)
	s := store(t, c, redisstore.Prefix("p:q"))
	declareNew(t, s)
	for _, name := range []string{"plain", "{a}b", "a{b}c", "a{}b", "a{b", "}a{", "{}", "}", "{p:q}"} {
		w, r := ask(name, owner()), ask("readers of "+name, owner())
		mustAcquire(t, s, w)
		force := ask(name, owner())
		force.Kind = quorum.KindForce
		mustAcquire(t, s, force)
		r.Mode = quorum.ModeShared
		mustAcquire(t, s, r)
		w.Entomb = true
		_ = s.Release(t.Context(), w)
	}
	keys := keysOf(t, c)
	if want := 1 + 9*(2+1+1+4); len(keys) != want { // the record; vote, counter, forced, tomb; vote, counter, readers, ends
		t.Errorf("%d keys, want %d: %q", len(keys), want, keys)
	}
	slots := map[int64]bool{}
	for _, key := range keys {
		slot, err := nodeOfCluster.ClusterKeySlot(t.Context(), key).Result()
		if err != nil {
			t.Fatal(err)
		}
		slots[slot] = true
	}
	if len(slots) != 1 {
		t.Errorf("the keys lie in %d slots: %q", len(slots), keys)
	}
}

// TestDeletedVoteFreesTheNameAndKeepsTheToken is what people do to a lock that
// is stuck.
func TestDeletedVoteFreesTheNameAndKeepsTheToken(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	declareNew(t, s)
	for _, mode := range []quorum.Mode{quorum.ModeExclusive, quorum.ModeShared} {
		r := ask("k", owner())
		r.Mode = mode
		token := mustAcquire(t, s, r).Token
		if err := c.Del(t.Context(), "{quorum}:vote:k").Err(); err != nil {
			t.Fatal(err)
		}
		next := ask("k", owner())
		g := mustAcquire(t, s, next)
		if g.Token != token+1 {
			t.Errorf("%v: token %d after %d", mode, g.Token, token)
		}
		mustRelease(t, s, next)
		// A reader that comes now must not bring the deleted one back.
		other := ask("k", owner())
		other.Mode = quorum.ModeShared
		if g := mustAcquire(t, s, other); g.Readers != 1 {
			t.Errorf("%v: %d readers, want 1", mode, g.Readers)
		}
		_, err := s.Extend(t.Context(), r)
		wantOutcome(t, err, quorum.OutcomeNotHeld)
		mustRelease(t, s, other)
	}
}

// TestF125CountersVanishAndTokensGrow moves a real server's clock.
func TestF125CountersVanishAndTokensGrow(t *testing.T) {
	node, clock := stoppedRedis(t)
	c := client(t, node.Addr)
	s := store(t, c)
	r := ask("", quorum.Owner{})
	declareNew(t, s)
	tokens := map[string]int64{}
	before := usedMemory(t, c)
	const names = 2000
	for i := range names {
		r := ask(fmt.Sprintf("name-%d", i), owner())
		tokens[r.Key] = mustAcquire(t, s, r).Token
		mustRelease(t, s, r)
	}
	full := usedMemory(t, c)
	t.Logf("%d bytes an idle name", (full-before)/names)
	clock.Advance(10 * time.Minute)
	for key := range tokens {
		if c.Exists(t.Context(), "{quorum}:count:"+key).Val() != 1 {
			t.Fatalf("the counter of %s is gone after 10 minutes", key)
		}
		break
	}
	clock.Advance(maxTTL + 2*time.Second)
	await(t, "Redis to drop the counters", func() bool { return c.DBSize(t.Context()).Val() == 1 })
	if left := usedMemory(t, c) - before; left > (full-before)/2 {
		t.Errorf("%d bytes of %d are left", left, full-before)
	}
	step, err := s.ReadStep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	for key, token := range tokens {
		g := mustAcquire(t, s, ask(key, owner()))
		if g.Token <= token || g.Token>>26 != step.Step {
			t.Fatalf("%s: token %d after %d, step %d", key, g.Token, token, step.Step)
		}
	}
}

func usedMemory(t *testing.T, c *redis.Client) int64 {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "memory").Result()
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if _, err := fmt.Sscan(info["Memory"]["used_memory"], &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestClockThatGoesBackMovesTheStep(t *testing.T) {
	node, clock := stoppedRedis(t)
	s := store(t, client(t, node.Addr))
	r := ask("", quorum.Owner{})
	declareNew(t, s)
	read := func() quorum.Step {
		t.Helper()
		step, err := s.ReadStep(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		return step
	}
	held := ask("held", owner())
	mustAcquire(t, s, held)
	start := read()
	clock.Advance(-time.Second)
	if got := read(); got.Step != start.Step+1 {
		t.Errorf("step %d after the clock went back, %d before", got.Step, start.Step)
	}
	if got := read(); got.Step != start.Step+1 {
		t.Errorf("step %d after another look", got.Step)
	}
	clock.Advance(-time.Hour)
	_, err := s.Acquire(t.Context(), ask("held", owner())) // brings the far end near
	wantOutcome(t, err, quorum.OutcomeContended)
	clock.Advance(maxTTL)
	mustAcquire(t, s, ask("held", owner()))
	if got := read(); got.Step != start.Step+2 {
		t.Errorf("step %d, want %d", got.Step, start.Step+2)
	}
}

// TestTokensAreExactTo53Bits goes to the end of what a script can count.
func TestTokensAreExactTo53Bits(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	declareNew(t, s)
	mustAcquire(t, s, ask("k", owner()))
	for _, counter := range []int64{1<<31 - 1, 1<<52 + 1, 1<<53 - 3} {
		_ = c.Del(t.Context(), "{quorum}:vote:k")
		if err := c.Set(t.Context(), "{quorum}:count:k", fmt.Sprintf("%d w", counter), time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
		if g := mustAcquire(t, s, ask("k", owner())); g.Token != counter+1 {
			t.Errorf("token %d after %d", g.Token, counter)
		}
		mustAcquireOther(t, s)
	}
	_ = c.Del(t.Context(), "{quorum}:vote:k")
	r := ask("k", owner())
	if g := mustAcquire(t, s, r); g.Token != 1<<53-1 {
		t.Errorf("token %d, want 2^53-1", g.Token)
	}
	mustRelease(t, s, r)
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !contains(err.Error(), "2^53") {
		t.Errorf("the last token is used up: %v", err)
	}
}

// mustAcquireOther shows that other names go on.
func mustAcquireOther(t *testing.T, s *redisstore.Store) {
	t.Helper()
	mustAcquire(t, s, ask("other "+fmt.Sprint(time.Now().UnixNano()), owner()))
}

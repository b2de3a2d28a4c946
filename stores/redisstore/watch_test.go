package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// watched is a Watch that goes on until the test ends or stop.
type watched struct {
	wakes chan quorum.Wake
	ended chan error
	stop  context.CancelFunc
}

func watch(t *testing.T, s *redisstore.Store, r quorum.Request) *watched {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	w := &watched{wakes: make(chan quorum.Wake, 100), ended: make(chan error, 1), stop: stop}
	go func() { w.ended <- s.Watch(ctx, r, func(k quorum.Wake) { w.wakes <- k }) }()
	t.Cleanup(func() { stop(); _ = s.Close() })
	w.want(t, quorum.WakeStarted)
	return w
}

func (w *watched) want(t *testing.T, kind quorum.WakeKind) quorum.Wake {
	t.Helper()
	select {
	case k := <-w.wakes:
		if k.Kind != kind {
			t.Fatalf("wake %+v, want %v", k, kind)
		}
		return k
	case err := <-w.ended:
		t.Fatalf("the watch ended (%v), want %v", err, kind)
	case <-time.After(10 * time.Second):
		t.Fatalf("no wake in 10 s, want %v", kind)
	}
	return quorum.Wake{}
}

// refusedWaiting leaves a mark.
func refusedWaiting(t *testing.T, s *redisstore.Store, key string) {
	t.Helper()
	r := ask(key, owner())
	r.Wait = quorum.WaitWatch
	_, err := s.Acquire(t.Context(), r)
	wantOutcome(t, err, quorum.OutcomeContended)
}

// commands says how often a server was sent one.
func commands(t *testing.T, c *redis.Client, name string) string {
	t.Helper()
	info, err := c.InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	calls, _, _ := strings.Cut(strings.TrimPrefix(info["Commandstats"]["cmdstat_"+name], "calls="), ",")
	return calls
}

func TestReleaseWakesWhoWaitsAndCostsNothingElse(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	declareNew(t, s)
	holder := ask("k", owner())
	w := watch(t, s, holder)

	mustAcquire(t, s, holder)
	mustRelease(t, s, holder)
	if n := commands(t, c, "publish"); n != "" {
		t.Errorf("%s messages with nobody waiting", n)
	}
	holder = ask("k", owner())
	mustAcquire(t, s, holder)
	refusedWaiting(t, s, "k")
	if _, err := s.Extend(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	mustRelease(t, s, holder)
	w.want(t, quorum.WakeChanged)

	// The one that is woken takes the name, and the others that wait need not
	// leave a mark again.
	next := ask("k", owner())
	mustAcquire(t, s, next)
	mustRelease(t, s, next)
	w.want(t, quorum.WakeChanged)

	// Once nobody listens any more, the name costs what it did before.
	w.stop()
	if err := <-w.ended; err != nil {
		t.Fatalf("a watch that is not wanted any more: %v", err)
	}
	await(t, "the server to see that nobody listens", func() bool {
		return c.PubSubNumSub(t.Context(), "{quorum}:wake:k").Val()["{quorum}:wake:k"] == 0
	})
	for range 2 {
		mustAcquire(t, s, next)
		mustRelease(t, s, next)
	}
	if n := commands(t, c, "publish"); n != "3" {
		t.Errorf("%s messages, want 3: one to nobody, and no more", n)
	}
}

func TestEveryEndOfAVoteIsTold(t *testing.T) {
	node, clock := stoppedRedis(t)
	s := store(t, client(t, node.Addr))
	declareNew(t, s)
	w := watch(t, s, ask("k", owner()))

	first := ask("k", owner())
	mustAcquire(t, s, first)
	refusedWaiting(t, s, "k")
	force := ask("k", owner())
	force.Kind = quorum.KindForce
	mustAcquire(t, s, force)
	w.want(t, quorum.WakeChanged)

	clock.Advance(2 * maxTTL) // expired; told once, when it is seen
	next := ask("k", owner())
	mustAcquire(t, s, next)
	w.want(t, quorum.WakeChanged)

	next.Owner.Attempt, next.Kind, next.Mode = 2, quorum.KindConvert, quorum.ModeShared
	mustAcquire(t, s, next)
	w.want(t, quorum.WakeChanged)

	other := ask("k", owner())
	other.Mode = quorum.ModeShared
	mustAcquire(t, s, other)
	mustRelease(t, s, other) // one reader of two, so that the last may be promoted
	w.want(t, quorum.WakeChanged)
	mustRelease(t, s, next)
	w.want(t, quorum.WakeChanged)
	select {
	case k := <-w.wakes:
		t.Errorf("one wake more: %+v", k)
	default:
	}
}

func TestWatchesShareOneConnection(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	declareNew(t, s)
	all := make([]*watched, 20)
	for i := range all {
		key := "k"
		if i%2 == 1 {
			key = "other " + string(rune('a'+i))
		}
		all[i] = watch(t, s, ask(key, owner()))
	}
	if n := len(pubsubs(t, c)); n != 1 {
		t.Errorf("%d connections for %d watches", n, len(all))
	}
	holder := ask("k", owner())
	mustAcquire(t, s, holder)
	refusedWaiting(t, s, "k")
	mustRelease(t, s, holder)
	for i, w := range all {
		if i%2 == 0 {
			w.want(t, quorum.WakeChanged)
		}
	}
	for i, w := range all {
		if i%2 == 1 && len(w.wakes) > 0 {
			t.Errorf("the watch of another name was told %+v", <-w.wakes)
		}
		w.stop()
	}
	// Nobody watches: the connection ends, and comes again when somebody does.
	await(t, "the connection to end", func() bool { return len(pubsubs(t, c)) == 0 })
	watch(t, s, ask("k", owner()))
}

func pubsubs(t *testing.T, c *redis.Client) []string {
	t.Helper()
	list, err := c.Do(t.Context(), "client", "list", "type", "pubsub").Text()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(strings.TrimSpace(strings.ReplaceAll(list, " ", "_")))
}

func TestABrokenConnectionIsMadeAgain(t *testing.T) {
	node := testserver.Redis(t)
	c := client(t, node.Addr)
	s := store(t, c)
	declareNew(t, s)
	w := watch(t, s, ask("k", owner()))
	if err := c.Do(t.Context(), "client", "kill", "type", "pubsub").Err(); err != nil {
		t.Fatal(err)
	}
	w.want(t, quorum.WakeStarted)
	w.want(t, quorum.WakeChanged) // it may have been missed
	node.Restart()
	w.want(t, quorum.WakeStarted)
	w.want(t, quorum.WakeChanged)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-w.ended; !errors.Is(err, redis.ErrClosed) {
		t.Errorf("a watch of a closed store ended with %v", err)
	}
	if err := s.Watch(t.Context(), ask("k", owner()), nil); !errors.Is(err, redis.ErrClosed) {
		t.Errorf("a watch after Close: %v", err)
	}
}

// TestAServerThatHangsIsLeft: the connection stays open and nothing comes.
func TestAServerThatHangsIsLeft(t *testing.T) {
	node := testserver.Redis(t)
	s := store(t, client(t, node.Addr))
	declareNew(t, s)
	w := watch(t, s, ask("k", owner()))
	node.Stall()
	await(t, "the hub to give up the connection", func() bool { return redisstore.Broken(s) })
	node.Resume()
	w.want(t, quorum.WakeStarted)
	w.want(t, quorum.WakeChanged)
}

func TestR24ADeletedVoteIsTold(t *testing.T) {
	c := client(t, testserver.Redis(t, testserver.RedisConfig("notify-keyspace-events Kg")).Addr)
	s := store(t, c)
	declareNew(t, s)
	holder := ask("k", owner())
	mustAcquire(t, s, holder)
	w := watch(t, s, holder)
	await(t, "the subscription to the key", func() bool {
		name := "__keyspace@0__:{quorum}:vote:k"
		return c.PubSubNumSub(t.Context(), name).Val()[name] == 1
	})
	if err := c.Del(t.Context(), "{quorum}:vote:k").Err(); err != nil {
		t.Fatal(err)
	}
	w.want(t, quorum.WakeChanged)
	_, err := s.Extend(t.Context(), holder)
	wantOutcome(t, err, quorum.OutcomeNotHeld)
}

// TestWatchWithFewPermissions: a user that may not hear of keys still hears of
// releases, and one that may hear of nothing is told so.
func TestWatchWithFewPermissions(t *testing.T) {
	node := testserver.Redis(t, testserver.RedisConfig(
		"user some on >secret resetchannels &{quorum}:wake:* ~{quorum}:* +@all",
		"user none on >secret resetchannels ~{quorum}:* +@all"))
	as := func(user string) *redisstore.Store {
		c := redis.NewClient(&redis.Options{
			Addr: node.Addr, Username: user, Password: "secret", MaxRetries: -1, ContextTimeoutEnabled: true,
		})
		t.Cleanup(func() { _ = c.Close() })
		return store(t, c)
	}
	some, none := as("some"), as("none")
	declareNew(t, some)
	w := watch(t, some, ask("k", owner()))
	for _, s := range []*redisstore.Store{some, none} {
		holder := ask("k", owner())
		mustAcquire(t, s, holder)
		refusedWaiting(t, s, "k")
		mustRelease(t, s, holder) // also where the message may not be sent
	}
	w.want(t, quorum.WakeChanged)
	err := none.Watch(t.Context(), ask("k", owner()), func(quorum.Wake) {})
	if err == nil || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("a watch without any permission ended with %v", err)
	}
}

package redisstore_test

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
	"github.com/quorumlock/quorum/storetest"
)

func clusterClient(t testing.TB, nodes []*testserver.RedisNode) *redis.ClusterClient {
	t.Helper()
	var addrs []string
	for _, n := range nodes {
		addrs = append(addrs, n.Addr)
	}
	c := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: addrs, ContextTimeoutEnabled: true, DialTimeout: time.Second, DialerRetries: 1,
	})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// nodeOf finds the primary that serves a key, as the servers see it.
func nodeOf(t *testing.T, c *redis.ClusterClient, nodes []*testserver.RedisNode, key string) *testserver.RedisNode {
	t.Helper()
	at, err := c.MasterForKey(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if n.Addr == at.Options().Addr {
			return n
		}
	}
	t.Fatalf("no node has the address %s", at.Options().Addr)
	return nil
}

// awaitWithout waits until every node knows that one is a primary no more: until
// then a client that asks any of them may be sent back to it.
func awaitWithout(t *testing.T, nodes []*testserver.RedisNode, gone *testserver.RedisNode) {
	t.Helper()
	for _, n := range nodes {
		if n == gone {
			continue
		}
		c := client(t, n.Addr)
		await(t, n.Addr+" to know the new primary", func() bool {
			//lint:ignore SA1019 its successor is not in Redis 6.2
			slots, err := c.ClusterSlots(t.Context()).Result()
			return err == nil && !slices.ContainsFunc(slots, func(s redis.ClusterSlot) bool { return s.Nodes[0].Addr == gone.Addr })
		})
	}
}

func TestConformanceRedisCluster(t *testing.T) {
	nodes := testserver.RedisCluster(t, 3, 0)
	var prefixes sync.Map
	var n atomic.Int32
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			prefix := fmt.Sprintf("check-%d", n.Add(1))
			s := store(t, clusterClient(t, nodes), redisstore.Prefix(prefix))
			prefixes.Store(s, prefix)
			return s
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			prefix, _ := prefixes.Load(first)
			return store(t, clusterClient(t, nodes), redisstore.Prefix(prefix.(string)))
		},
		Parallel: true,
	})
}

// TestF178F179NamesSpreadOverACluster takes many names, of all shapes, and looks
// where their keys lie.
func TestF178F179NamesSpreadOverACluster(t *testing.T) {
	nodes := testserver.RedisCluster(t, 3, 0)
	c := clusterClient(t, nodes)
	s := store(t, c)
	declareNew(t, s)
	if l := s.Limits(); l.Doubles || !l.Forgets {
		t.Errorf("limits %+v", l)
	}
	names := []string{"{a}b", "a{b}c", "a{}b", "a{b", "}a{", "{}", "}"}
	for i := range 300 {
		names = append(names, fmt.Sprintf("name %d", i))
	}
	for _, name := range names { // F179: any number of names at a time, on any nodes
		w, r := ask(name, owner()), ask("readers of "+name, owner())
		r.Mode = quorum.ModeShared
		mustAcquire(t, s, w)
		mustAcquire(t, s, r)
		force := ask(name, owner())
		force.Kind = quorum.KindForce
		mustAcquire(t, s, force)
		force.Entomb = true
		mustRelease(t, s, force)
	}
	slotOf := map[string]int64{}
	most := 0
	for _, node := range nodes {
		keys := keysOf(t, client(t, node.Addr))
		most = max(most, len(keys))
		for _, key := range keys {
			tag, rest, _ := strings.Cut(strings.TrimPrefix(key, "{"), "}:")
			_, name, _ := strings.Cut(rest, ":")
			slot, err := c.ClusterKeySlot(t.Context(), key).Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, what := range []string{"part " + tag, "name " + name} {
				if was, ok := slotOf[what]; ok && was != slot && what != "name " {
					t.Fatalf("%s lies in slots %d and %d", what, was, slot)
				}
				slotOf[what] = slot
			}
		}
	}
	all := 1024 + len(names)*(2+4+2)
	if most > all/2 {
		t.Errorf("one of three nodes has %d of about %d keys", most, all)
	}
}

// TestR46FailOverOfAClusterNodeIsKeptOut kills a primary. The replica that takes
// its place may lack what the primary acknowledged.
func TestR46FailOverOfAClusterNodeIsKeptOut(t *testing.T) {
	nodes := testserver.RedisCluster(t, 3, 1)
	c := clusterClient(t, nodes)
	s := store(t, c)
	declareNew(t, s)
	names := map[*testserver.RedisNode]string{} // one on each primary
	for i := 0; len(names) < 3; i++ {
		name := fmt.Sprintf("name %d", i)
		node := nodeOf(t, c, nodes, redisstore.Tag(s, name))
		if names[node] == "" {
			names[node] = name
		}
	}
	before := map[string]int64{}
	for _, name := range names {
		r := brief(name, owner())
		before[name] = mustAcquire(t, s, r).Token
		mustRelease(t, s, r)
	}
	victim := nodeOf(t, c, nodes, redisstore.Tag(s, names[nodes[0]]))
	lost := names[victim]
	victim.Stop()
	var err error
	await(t, "the replica to answer in its primary's place", func() bool {
		r := brief(lost, owner())
		r.Limit = time.Second
		_, err = s.Acquire(t.Context(), r)
		if err == nil {
			t.Fatal("granted by a replica that was promoted just now")
		}
		o := quorum.OutcomeOf(err)
		return o != quorum.OutcomeUndelivered && o != quorum.OutcomeUnknown
	})
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	awaitWithout(t, nodes, victim)
	var step quorum.Step
	await(t, "the client to hear of the new primary", func() bool {
		step, err = s.ReadStep(t.Context(), brief("", quorum.Owner{}))
		return err == nil
	})
	if step.Quarantine == "" {
		t.Fatalf("step %+v: one part of it is in quarantine", step)
	}
	for node, name := range names {
		if node != victim {
			r := brief(name, owner())
			mustAcquire(t, s, r) // the others go on
			mustRelease(t, s, r)
		}
	}
	err = s.Raise(t.Context(), brief("", quorum.Owner{}), quorum.Raise{Quarantine: "other", Step: step.Step})
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	await(t, "the quarantine's time to be over", func() bool {
		step, err = s.ReadStep(t.Context(), brief("", quorum.Owner{}))
		return err == nil && step.Over
	})
	if err := s.Raise(t.Context(), brief("", quorum.Owner{}), quorum.Raise{Quarantine: step.Quarantine, Step: step.Step}); err != nil {
		t.Fatal(err)
	}
	if g := mustAcquire(t, s, brief(lost, owner())); g.Token <= before[lost] || g.Token <= (step.Step+1)<<26 {
		t.Errorf("token %d after %d and step %d", g.Token, before[lost], step.Step)
	}
	for node, name := range names {
		if node == victim {
			continue
		}
		if g := mustAcquire(t, s, brief(name, owner())); g.Token != before[name]+2 {
			t.Errorf("a part that never was in quarantine was raised: token %d after %d", g.Token, before[name])
		}
	}
	if n := redisstore.Shards(s); n != 3 {
		t.Errorf("%d nodes are kept, want the 3 primaries", n)
	}
}

// TestMigratingSlotsAreUndelivered moves a slot while its name is asked for.
func TestMigratingSlotsAreUndelivered(t *testing.T) {
	nodes := testserver.RedisCluster(t, 3, 0)
	c := clusterClient(t, nodes)
	s := store(t, c)
	declareNew(t, s)
	r := ask("k", owner())
	token := mustAcquire(t, s, r).Token
	mustRelease(t, s, r)
	tag := redisstore.Tag(s, "k")
	from := nodeOf(t, c, nodes, tag)
	to := nodes[0]
	if to == from {
		to = nodes[1]
	}
	source, target := client(t, from.Addr), client(t, to.Addr)
	slot := c.ClusterKeySlot(t.Context(), tag).Val()
	ids := map[*redis.Client]string{}
	for _, n := range []*redis.Client{source, target} {
		ids[n] = n.Do(t.Context(), "cluster", "myid").Val().(string)
	}
	must := func(n *redis.Client, args ...any) {
		t.Helper()
		if err := n.Do(t.Context(), args...).Err(); err != nil {
			t.Fatalf("%v: %v", args, err)
		}
	}
	must(target, "cluster", "setslot", slot, "importing", ids[source])
	must(source, "cluster", "setslot", slot, "migrating", ids[target])

	// Half of it has gone: the name's counter, but not the record.
	host, port, _ := strings.Cut(to.Addr, ":")
	must(source, "migrate", host, port, tag+":count:k", 0, 5000)
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !strings.Contains(err.Error(), "migrated") {
		t.Errorf("an acquire in a half migrated slot: %v", err)
	}
	for _, key := range source.ClusterGetKeysInSlot(t.Context(), int(slot), 100).Val() {
		must(source, "migrate", host, port, key, 0, 5000)
	}
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	for _, n := range nodes {
		must(client(t, n.Addr), "cluster", "setslot", slot, "node", ids[target])
	}

	// The new node never ran before with this record: it may have forgotten.
	await(t, "the client to find the slot", func() bool {
		_, err = s.Acquire(t.Context(), ask("k", owner()))
		return quorum.OutcomeOf(err) != quorum.OutcomeUndelivered
	})
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	state, err := s.Inspect(t.Context(), ask("k", owner()))
	if err != nil || state.Counter != token {
		t.Errorf("state %+v, %v: the counter %d has moved along", state, err, token)
	}
}

func TestClusterWakesAndServes(t *testing.T) {
	nodes := testserver.RedisCluster(t, 3, 0)
	s := store(t, clusterClient(t, nodes))
	declareNew(t, s)
	dsn, err := url.Parse(fmt.Sprintf("redis+cluster://%s?addr=%s&name=a", nodes[1].Addr, nodes[2].Addr))
	if err != nil {
		t.Fatal(err)
	}
	other, err := redisstore.Opener().Open(t.Context(), dsn) // releases elsewhere than the watch is connected to
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.(*redisstore.Store).Close() })
	for i := range 6 {
		key := fmt.Sprintf("name %d", i)
		w := watch(t, s, ask(key, owner()))
		holder := ask(key, owner())
		mustAcquire(t, other, holder)
		refusedWaiting(t, s, key)
		mustRelease(t, other, holder)
		w.want(t, quorum.WakeChanged)
	}
	r := ask("", quorum.Owner{})
	both := []quorum.Fingerprint{r.Set, 0xa1}
	if err := s.Serve(t.Context(), r, both[:1], both); err != nil {
		t.Fatal(err)
	}
	if got, err := other.(*redisstore.Store).Serves(t.Context(), r); err != nil || len(got) != 2 {
		t.Errorf("serves %v, %v", got, err)
	}
	for i := range 20 {
		r := ask(fmt.Sprintf("other %d", i), owner())
		r.Set = 0xa1
		mustAcquire(t, s, r)
	}
}

func TestR60AGrantWaitsForReplicas(t *testing.T) {
	primary := testserver.Redis(t)
	replica := testserver.Redis(t, testserver.ReplicaOf(primary))
	c := client(t, primary.Addr)
	s := store(t, c, redisstore.WaitReplicas(1, time.Second))
	await(t, "the replica to follow", func() bool {
		return c.Do(t.Context(), "wait", 1, 100).Val() == int64(1)
	})
	r := ask("k", owner())
	declareNew(t, s)
	first := mustAcquire(t, s, r)
	if n := client(t, replica.Addr).Exists(t.Context(), "{quorum}:vote:k").Val(); n != 1 {
		t.Error("the grant counted before the replica had it")
	}
	replica.Stall()
	_, err := s.Extend(t.Context(), r)
	wantOutcome(t, err, quorum.OutcomeUnknown)
	other := ask("other", owner())
	_, err = s.Acquire(t.Context(), other)
	wantOutcome(t, err, quorum.OutcomeUnknown)
	if !contains(err.Error(), "0 of 1 replicas") {
		t.Errorf("a grant without a replica: %v", err)
	}
	if n := c.Exists(t.Context(), "{quorum}:vote:other").Val(); n != 0 {
		t.Error("a grant that did not count was not undone")
	}
	replica.Resume()
	await(t, "the replica to follow again", func() bool {
		return c.Do(t.Context(), "wait", 1, 100).Val() == int64(1)
	})
	if g, err := s.Extend(t.Context(), r); err != nil || g.Token != first.Token {
		t.Errorf("extend: %+v %v", g, err)
	}
	mustAcquire(t, s, other)
	for _, bad := range []redisstore.Option{
		redisstore.WaitReplicas(0, time.Second), redisstore.WaitReplicas(1, 0), redisstore.WaitReplicas(1, time.Minute),
	} {
		if _, err := redisstore.New("a", c, bad); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%v, want ErrInvalidOption", err)
		}
	}
}

package consulstore_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
	"github.com/quorumlock/quorum/storetest"
)

// set is three Consul servers as one store, each behind a wrapper that spoils it.
type set struct {
	nodes []*testserver.ConsulNode
	spoil []*storetest.Spoiled
	store *quorum.CombinedStore
}

func newSet(t *testing.T) *set {
	t.Helper()
	s := &set{}
	var members []quorum.Store
	for i := range 3 {
		node := testserver.Consul(t)
		sp := storetest.Spoil(member(t, i, node.Addr))
		t.Cleanup(sp.Close)
		s.nodes, s.spoil = append(s.nodes, node), append(s.spoil, sp)
		members = append(members, sp)
	}
	var err error
	if s.store, err = quorum.Combine(quorum.Consensus(), members...); err != nil {
		t.Fatal(err)
	}
	return s
}

func member(t *testing.T, i int, addr string) *consulstore.Store {
	t.Helper()
	s, err := consulstore.New("node"+strconv.Itoa(i), client(t, addr), consulstore.MinTTL(minTTL))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func locker(t *testing.T, store quorum.Store, options ...quorum.Option) *quorum.Locker {
	t.Helper()
	l, err := quorum.New(store, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l
}

// calm is what all clients of a set agree on: times that a busy machine keeps.
var calm = []quorum.Option{
	quorum.TTL(8 * time.Second), quorum.MaxTTL(8 * time.Second), quorum.CallLimit(time.Second),
	quorum.Backoff(60*time.Millisecond, 200*time.Millisecond),
}

func takeLease(t *testing.T, l *quorum.Locker, key string) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return lease
}

// TestSetSurvivesOneServer: a server is killed and comes back with its vote,
// another hangs while the lease is released, and tokens grow.
func TestSetSurvivesOneServer(t *testing.T) {
	s := newSet(t)
	l := locker(t, s.store, calm...)
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease := takeLease(t, l, "k")
	everywhere := func() bool {
		status, err := l.Inspect(t.Context(), "k")
		if err != nil {
			return false
		}
		for _, st := range status.Stores {
			if len(st.State.Holders) != 1 || st.State.Holders[0].Token != lease.Token() {
				return false
			}
		}
		return true
	}
	await(t, "the third server to be repaired", everywhere)
	s.nodes[0].Stop()
	if err := lease.Extend(t.Context(), 8*time.Second); err != nil {
		t.Errorf("extend with two of three: %v", err)
	}
	s.nodes[0].Restart()
	await(t, "all three again", func() bool { return lease.Extend(t.Context(), 8*time.Second) == nil && everywhere() })
	s.nodes[1].Stall()
	if err := lease.Release(t.Context()); err != nil {
		t.Errorf("release while one hangs: %v", err)
	}
	next := takeLease(t, l, "k")
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	s.nodes[1].Resume()
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestSpoiledRepliesNeverLetTwoIn loses, doubles and delays what the stores are
// asked and answer.
func TestSpoiledRepliesNeverLetTwoIn(t *testing.T) {
	s := newSet(t)
	l := locker(t, s.store, calm...)
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	calls := 0
	every := func(n int) func(storetest.Call) bool {
		return func(storetest.Call) bool {
			mu.Lock()
			defer mu.Unlock()
			calls++
			return calls%n == 0
		}
	}
	for _, sp := range s.spoil {
		sp.Set(
			storetest.On(every(17), storetest.DropReply(nil)),
			storetest.On(every(13), storetest.Double(5*time.Millisecond)),
			storetest.On(every(19), storetest.LateApply(20*time.Millisecond, nil)),
		)
	}
	g := &acceptance.Guard{}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range 6 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				lease, err := l.Acquire(ctx, "k")
				cancel()
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				g.Enter(lease.Token())
				g.Leave()
				_ = lease.Release(t.Context()) // what fails is retried
			}
		})
	}
	workers.Wait()
	g.Judge(t, 24)
}

// TestTenProcessesNeverOverlap has ten processes take one lock over three
// servers, two hundred times each. They poll: told of every release all nine
// that wait would ask at once, and two cores have no time for that.
func TestTenProcessesNeverOverlap(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	soak := acceptance.Soak{
		Processes: 10, Rounds: 200, Options: calm,
		Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
			var members []quorum.Store
			for i, addr := range addrs {
				sp := storetest.Spoil(member(t, i, addr))
				sp.Pretend(func(l *quorum.Limits) { l.Watches, l.Queues = false, false })
				t.Cleanup(sp.Close)
				members = append(members, sp)
			}
			return quorum.Combine(quorum.Consensus(), members...)
		},
	}
	if !acceptance.Worker() {
		for range 3 {
			soak.DSNs = append(soak.DSNs, testserver.Consul(t).Addr)
		}
	}
	soak.Run(t)
}

// TestR10R31TwoProcesses: one is killed, one hands its lease over.
func TestR10R31TwoProcesses(t *testing.T) {
	p := acceptance.Parting{Options: calm, Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
		var members []quorum.Store
		for i, addr := range addrs {
			members = append(members, member(t, i, addr))
		}
		return quorum.Combine(quorum.Consensus(), members...)
	}}
	if !acceptance.Worker() {
		p.DSNs = append(p.DSNs, testserver.Consul(t).Addr) // one: each takes as much memory as the rest of the test
	}
	p.Run(t)
}

// TestR13ProcessesComeInByTurns has four processes of two waiters stand in the
// queues of three servers.
func TestR13ProcessesComeInByTurns(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 4, Workers: 2, Rounds: 15,
		Options: []quorum.Option{quorum.TTL(time.Minute), quorum.MaxTTL(time.Minute), quorum.CallLimit(15 * time.Second)},
		Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
			var members []quorum.Store
			for i, addr := range addrs {
				members = append(members, member(t, i, addr))
			}
			return quorum.Combine(quorum.Consensus(), members...)
		},
	}
	if !acceptance.Worker() {
		for range 3 {
			soak.DSNs = append(soak.DSNs, testserver.Consul(t).Addr)
		}
	}
	turns := soak.Run(t)
	if !acceptance.Worker() {
		turns.Judge(t, 8)
	}
}

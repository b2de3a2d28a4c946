package etcdstore_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
	"github.com/quorumlock/quorum/storetest"
)

// setLock is what all clients of the sets agree on.
var setLock = []quorum.Option{quorum.TTL(4 * time.Second), quorum.MaxTTL(4 * time.Second)}

// combine makes one store of those on servers, each behind a wrapper that can
// spoil it.
func combine(t testing.TB, addrs []string) (*quorum.CombinedStore, []*storetest.Spoiled) {
	t.Helper()
	var members []quorum.Store
	var spoil []*storetest.Spoiled
	for i, addr := range addrs {
		s, err := etcdstore.New("cluster"+strconv.Itoa(i), clientOf(t, clientv3.Config{Endpoints: []string{addr}}))
		if err != nil {
			t.Fatal(err)
		}
		sp := storetest.Spoil(s)
		t.Cleanup(sp.Close)
		spoil, members = append(spoil, sp), append(members, sp)
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	return set, spoil
}

// locker takes locks in those stores.
func locker(t testing.TB, addrs []string) (*quorum.Locker, []*storetest.Spoiled) {
	t.Helper()
	set, spoil := combine(t, addrs)
	l, err := quorum.New(set, setLock...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), slack)
		defer cancel()
		_ = l.Close(ctx)
	})
	return l, spoil
}

// clusters starts three clusters of one member, declared new.
func clusters(t *testing.T) (nodes []*testserver.EtcdNode, addrs []string, l *quorum.Locker, spoil []*storetest.Spoiled) {
	t.Helper()
	for range 3 {
		n := testserver.Etcd(t)
		nodes, addrs = append(nodes, n), append(addrs, n.Addr)
	}
	l, spoil = locker(t, addrs)
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	return nodes, addrs, l, spoil
}

func take(t testing.TB, l *quorum.Locker, key string) *quorum.Lease {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	lease, err := l.Acquire(ctx, key)
	if err != nil {
		t.Fatalf("acquire %q: %v", key, err)
	}
	return lease
}

// cycle takes a lock, gives it back, and returns its token.
func cycle(t *testing.T, l *quorum.Locker, key string) int64 {
	t.Helper()
	lease := take(t, l, key)
	if err := lease.Release(t.Context()); err != nil && !errors.Is(err, quorum.ErrNoQuorum) {
		t.Fatalf("release %q: %v", key, err)
	}
	return lease.Token()
}

// One cluster of three is killed, stalled and emptied in turn while locks are
// taken; tokens only grow.
func TestSetOfThreeOutlivesEachOfItsClusters(t *testing.T) {
	nodes, _, l, _ := clusters(t)
	last := int64(0)
	grows := func(what string) {
		t.Helper()
		for range 3 {
			token := cycle(t, l, "job")
			if token <= last {
				t.Errorf("%s: token %d after %d", what, token, last)
			}
			last = token
		}
	}
	grows("all up")
	nodes[0].Stop()
	grows("one killed")
	nodes[0].Restart()
	nodes[1].Stall()
	grows("one stalled")
	nodes[1].Resume()
	nodes[2].RestartFrom("")
	grows("one emptied")
	await(t, 4*time.Second+2*slack, "the emptied one to come back by its peers' word", func() bool {
		grows("one in quarantine")
		status, err := l.Inspect(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		return status.Stores[2].Err == nil && !status.Stores[2].State.Quarantine
	})
	nodes[0].Stop()
	grows("another killed")
}

// Requests are lost, late and doubled on their way to one cluster after the
// other.
func TestF052SpoiledConnectionsLeaveNothingBehind(t *testing.T) {
	_, _, l, spoil := clusters(t)
	lost := errors.New("lost on the way")
	last := int64(0)
	for i, faults := range map[string]storetest.Fault{
		"answers are lost":       storetest.DropReply(lost),
		"answers are late":       storetest.LateReply(300 * time.Millisecond),
		"requests are doubled":   storetest.Double(50 * time.Millisecond),
		"requests are lost":      storetest.Fail(lost),
		"requests arrive later":  storetest.LateApply(300*time.Millisecond, lost),
		"requests are not heard": storetest.Hang(),
	} {
		for _, sp := range spoil {
			sp.Set(storetest.Always(faults))
			token := cycle(t, l, "job")
			if token <= last {
				t.Errorf("%s: token %d after %d", i, token, last)
			}
			last = token
			sp.Set()
		}
	}
	await(t, 4*time.Second+slack, "nothing left behind", func() bool {
		status, err := l.Inspect(t.Context(), "job")
		if err != nil {
			t.Fatal(err)
		}
		left := 0
		for _, st := range status.Stores {
			left += len(st.State.Holders)
		}
		return left == 0
	})
}

// A key that is deleted by hand is one vote less, and put back.
func TestR24DeletedVoteIsRepaired(t *testing.T) {
	_, addrs, l, _ := clusters(t)
	c := clientOf(t, clientv3.Config{Endpoints: addrs[:1]})
	lease := take(t, l, "job")
	await(t, slack, "a vote of the first cluster", func() bool { return exists(t, c, "quorum/name/job/vote") })
	if _, err := c.Delete(t.Context(), "quorum/name/job/vote"); err != nil {
		t.Fatal(err)
	}
	await(t, slack, "the repair", func() bool { return exists(t, c, "quorum/name/job/vote") })
	if err := lease.Err(); err != nil {
		t.Errorf("the lease: %v", err)
	}
}

// Ten processes take one lock over three clusters, two hundred times each.
func TestTenProcessesNeverOverlap(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 10, Rounds: 200,
		Options: append(slices.Clone(setLock), quorum.Backoff(2*time.Millisecond, 50*time.Millisecond)),
		Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
			set, _ := combine(t, addrs)
			return set, nil
		},
	}
	if !acceptance.Worker() {
		for range 3 {
			soak.DSNs = append(soak.DSNs, testserver.Etcd(t).Addr)
		}
	}
	soak.Run(t)
}

// TestR10R31TwoProcesses: one is killed, one hands its lease over.
func TestR10R31TwoProcesses(t *testing.T) {
	p := acceptance.Parting{Options: setLock, Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
		set, _ := combine(t, addrs)
		return set, nil
	}}
	if !acceptance.Worker() {
		for range 3 {
			p.DSNs = append(p.DSNs, testserver.Etcd(t).Addr)
		}
	}
	p.Run(t)
}

// TestR13ProcessesComeInByTurns has eight processes of two waiters stand in
// the queues of three clusters.
func TestR13ProcessesComeInByTurns(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 8, Workers: 2, Rounds: 20,
		Options: []quorum.Option{quorum.TTL(time.Minute), quorum.MaxTTL(time.Minute), quorum.CallLimit(15 * time.Second)},
		Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
			set, _ := combine(t, addrs)
			return set, nil
		},
	}
	if !acceptance.Worker() {
		for range 3 {
			soak.DSNs = append(soak.DSNs, testserver.Etcd(t).Addr)
		}
	}
	turns := soak.Run(t)
	if !acceptance.Worker() {
		turns.Judge(t, 16)
	}
}

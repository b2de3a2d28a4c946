//go:build linux

package mixed

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
)

// holdTTL outlives a restart of a server.
const holdTTL = 30 * time.Second

// TestHolderOutlivesTrouble renews a lock while its servers change leaders and
// restart, short of loss: the lock is never lost, and no rival gets it. It takes
// a few seconds; QUORUM_HOLD=10m makes it the soak of docs/stores.md.
func TestHolderOutlivesTrouble(t *testing.T) {
	lasts := 12 * time.Second
	if text := os.Getenv("QUORUM_HOLD"); text != "" {
		var err error
		if lasts, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		kind string
		make func(t *testing.T) (dsns []string, trouble func(i int))
	}{
		{"etcd", etcdTrouble}, {"consul", consulTrouble}, {"postgres", postgresTrouble}, {"redis", redisTrouble},
	} {
		t.Run(row.kind, func(t *testing.T) {
			t.Parallel() // they mostly wait
			dsns, trouble := row.make(t)
			hold(t, dsns, trouble, lasts)
		})
	}
}

// hold keeps a lock for as long as it is to last, among rivals and trouble.
func hold(t *testing.T, dsns []string, trouble func(i int), lasts time.Duration) {
	open := func(label string) *quorum.Locker {
		t.Helper()
		set, err := quorum.Open(t.Context(), dsns, openers...)
		if err != nil {
			t.Fatal(err)
		}
		l, err := quorum.New(set, quorum.TTL(holdTTL), quorum.MaxTTL(time.Minute), quorum.RenewEvery(time.Second), quorum.Label(label))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close(context.Background()) })
		return l
	}
	holder, rival := open("holder"), open("rival")
	if err := holder.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := holder.Acquire(t.Context(), "job")
	if err != nil {
		t.Fatal(err)
	}
	troubles, tries, held := 0, 0, 0
	for end := time.Now().Add(lasts); time.Now().Before(end); {
		trouble(troubles)
		troubles++
		for range 4 {
			tries++
			got, err := rival.TryAcquire(t.Context(), "job")
			if err == nil {
				t.Fatalf("after %d troubles a rival got token %d while %d is held", troubles, got.Token(), lease.Token())
			}
			if errors.Is(err, quorum.ErrHeld) {
				held++
			}
			if err := lease.Err(); err != nil {
				t.Fatalf("after %d troubles: %v", troubles, err)
			}
			select {
			case <-lease.Context().Done():
			case <-time.After(500 * time.Millisecond):
			}
		}
	}
	t.Logf("held for %v through %d troubles; a rival tried %d times and was told %d times that it is held", lasts, troubles, tries, held)
	if held == 0 {
		t.Error("no rival was ever answered: the test shows nothing")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// etcdTrouble kills the leader of a cluster of three and brings it back.
func etcdTrouble(t *testing.T) ([]string, func(int)) {
	nodes := testserver.EtcdCluster(t, 3)
	hosts := nodes[0].Addr + "," + nodes[1].Addr + "," + nodes[2].Addr
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{nodes[0].Addr, nodes[1].Addr, nodes[2].Addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var down *testserver.EtcdNode
	return []string{"etcd://" + hosts + "?name=etcd"}, func(int) {
		if down != nil {
			down.Restart()
			down = nil
			return
		}
		for _, n := range nodes {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			status, err := c.Status(ctx, n.Addr)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				n.Stop()
				down = n
				return
			}
		}
	}
}

// consulTrouble kills a server and starts it on its disk again.
func consulTrouble(t *testing.T) ([]string, func(int)) {
	node := testserver.Consul(t)
	return []string{"consul://" + node.Addr + "?name=consul&min-ttl=1s"}, func(int) {
		node.Stop()
		node.Restart()
	}
}

// postgresTrouble kills a server and starts it on its disk again.
func postgresTrouble(t *testing.T) ([]string, func(int)) {
	node := testserver.Postgres(t, testserver.PostgresConfig("fsync = on"))
	return []string{node.URL() + "&name=postgres"}, func(int) {
		node.Stop()
		node.Restart()
	}
}

// redisTrouble stalls one of three servers, one after another: a Redis that
// restarts may have lost a lock, and does not vote for a MaxTTL.
func redisTrouble(t *testing.T) ([]string, func(int)) {
	var nodes []*testserver.RedisNode
	var dsns []string
	for _, name := range []string{"a", "b", "c"} {
		n := testserver.Redis(t)
		nodes, dsns = append(nodes, n), append(dsns, "redis://"+n.Addr+"?name="+name)
	}
	stalled := -1
	return dsns, func(i int) {
		if stalled >= 0 {
			nodes[stalled].Resume()
			stalled = -1
			return
		}
		stalled = i / 2 % len(nodes)
		nodes[stalled].Stall()
	}
}

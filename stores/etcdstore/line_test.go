//go:build unix

package etcdstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
)

// inQueue says how many stand in the queue of "job".
func inQueue(t *testing.T, addr string) func() int {
	c := clientOf(t, clientv3.Config{Endpoints: []string{addr}})
	return func() int {
		reply, err := c.Get(t.Context(), "quorum/name/job/queue")
		if err != nil {
			t.Fatal(err)
		}
		if len(reply.Kvs) == 0 {
			return 0
		}
		return strings.Count(string(reply.Kvs[0].Value), "\n") // below a line with the version
	}
}

func TestF016TheDeadAreNotWaitedFor(t *testing.T) {
	line := acceptance.Line{Dead: 1, Open: func(_ context.Context, addrs []string) (*quorum.CombinedStore, error) {
		set, _ := combine(t, addrs)
		return set, nil
	}}
	if !acceptance.Worker() {
		line.DSNs = []string{testserver.Etcd(t).Addr}
		line.Queued = inQueue(t, line.DSNs[0])
	}
	line.Run(t)
}

// TestR12LostEventsCostOneLook: what a waiter is told may be lost.
func TestR12LostEventsCostOneLook(t *testing.T) {
	for name, lose := range map[string]func(p *testserver.Proxy, ear *acceptance.Ear){
		"what is told does not arrive": func(_ *testserver.Proxy, ear *acceptance.Ear) { ear.Deaf.Store(true) },
		"the connection is cut":        func(p *testserver.Proxy, _ *acceptance.Ear) { p.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			node := testserver.Etcd(t)
			proxy := testserver.NewProxy(t, node.Addr)
			at := func(addr string) *acceptance.Ear {
				return &acceptance.Ear{Store: store(t, clientOf(t, clientv3.Config{Endpoints: []string{addr}}))}
			}
			locker := func(s quorum.Store) *quorum.Locker {
				l, err := quorum.New(s, quorum.TTL(20*time.Second), quorum.MaxTTL(20*time.Second))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = l.Close(context.Background()) })
				return l
			}
			ear := at(proxy.Addr)
			acceptance.LostWake(t, locker(at(node.Addr)), locker(ear), ear, inQueue(t, node.Addr), func() { lose(proxy, ear) })
		})
	}
}

// TestR33AWriterPassesReadersThatComeLater: no writer waits for more than the
// readers before it.
func TestR33AWriterPassesReadersThatComeLater(t *testing.T) {
	addrs := []string{testserver.Etcd(t).Addr}
	acceptance.Readers(t, func() *quorum.CombinedStore {
		set, _ := combine(t, addrs)
		return set
	})
}

package etcdstore_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
)

func TestF092AColdConnectionIsNeverContention(t *testing.T) {
	node := testserver.Etcd(t)
	p := testserver.NewProxy(t, node.Addr)
	open := func(addr string, options ...quorum.Option) *quorum.Locker {
		return acceptance.Locker(t, store(t, clientOf(t, clientv3.Config{Endpoints: []string{addr}})), options...)
	}
	if err := open(node.Addr).Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	acceptance.Cold{
		Open: func(options ...quorum.Option) *quorum.Locker { return open(p.Addr, options...) },
		Slow: p.Cold, Keeps: true,
	}.Run(t)
}

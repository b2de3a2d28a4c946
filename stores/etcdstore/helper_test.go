package etcdstore_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

// What is granted by ask outlasts a test on any machine. A vote or quarantine of
// brief is over soon, so that its end can be waited for.
const maxTTL, briefMaxTTL = time.Minute, 2 * time.Second

// client returns a client as a user makes it, closed with the test.
func client(t testing.TB, nodes ...*testserver.EtcdNode) *clientv3.Client {
	t.Helper()
	var config clientv3.Config
	for _, n := range nodes {
		config.Endpoints = append(config.Endpoints, n.Addr)
	}
	return clientOf(t, config)
}

func clientOf(t testing.TB, config clientv3.Config) *clientv3.Client {
	t.Helper()
	config.Logger = zap.NewNop()
	c, err := clientv3.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func store(t testing.TB, c *clientv3.Client, options ...etcdstore.Option) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.New("a", c, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func named(t testing.TB, name string, c *clientv3.Client, prefix string) *etcdstore.Store {
	t.Helper()
	s, err := etcdstore.New(name, c, etcdstore.Prefix(prefix))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fresh returns a store of a server of its own, declared new.
func fresh(t testing.TB) (*testserver.EtcdNode, *clientv3.Client, *etcdstore.Store) {
	t.Helper()
	node := testserver.Etcd(t)
	c := client(t, node)
	s := store(t, c)
	declareNew(t, s)
	return node, c, s
}

// ask is a request of the set that all these tests are.
func ask(key string, o quorum.Owner) quorum.Request {
	return quorum.Request{
		Key: key, Owner: o, TTL: maxTTL, MaxTTL: maxTTL, Limit: 5 * time.Second, Set: 0xfeed, Label: "tester",
	}
}

// brief is ask with a vote and a quarantine that end soon.
func brief(key string, o quorum.Owner) quorum.Request {
	r := ask(key, o)
	r.TTL, r.MaxTTL = briefMaxTTL, briefMaxTTL
	return r
}

// What all stores' tests share.
var (
	owner       = acceptance.Owner
	mustAcquire = acceptance.MustAcquire
	mustExtend  = acceptance.MustExtend
	mustRelease = acceptance.MustRelease
	wantOutcome = acceptance.WantOutcome
	await       = acceptance.Poll
)

// declareNew ends the quarantine that every server begins with.
func declareNew(t testing.TB, s *etcdstore.Store) {
	t.Helper()
	acceptance.DeclareNew(t, s, ask("", quorum.Owner{}))
}

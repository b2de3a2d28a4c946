package etcdstore_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

const maxTTL = 2 * time.Second

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

// owner returns a new owner in its first attempt.
func owner() quorum.Owner {
	o := quorum.Owner{Attempt: 1}
	_, _ = rand.Read(o.ID[:])
	return o
}

// ask is a request of the set that all these tests are.
func ask(key string, o quorum.Owner) quorum.Request {
	return quorum.Request{
		Key: key, Owner: o, TTL: maxTTL, MaxTTL: maxTTL, Limit: 5 * time.Second, Set: 0xfeed, Label: "tester",
	}
}

// declareNew ends the quarantine that every server begins with.
func declareNew(t testing.TB, s *etcdstore.Store) {
	t.Helper()
	r := ask("", quorum.Owner{})
	step, err := s.ReadStep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if step.Quarantine == "" {
		t.Fatal("a server that was never used is not in quarantine")
	}
	if err := s.Raise(t.Context(), r, quorum.Raise{Quarantine: step.Quarantine, Fresh: true}); err != nil {
		t.Fatal(err)
	}
}

func mustAcquire(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("acquire %q: %v", r.Key, err)
	}
	return g
}

func mustExtend(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Extend(t.Context(), r)
	if err != nil {
		t.Fatalf("extend %q: %v", r.Key, err)
	}
	return g
}

func mustRelease(t testing.TB, s quorum.Store, r quorum.Request) {
	t.Helper()
	if err := s.Release(context.WithoutCancel(t.Context()), r); err != nil {
		t.Fatalf("release %q: %v", r.Key, err)
	}
}

// wantOutcome fails unless err counts as want.
func wantOutcome(t testing.TB, err error, want quorum.Outcome) {
	t.Helper()
	if got := quorum.OutcomeOf(err); got != want {
		t.Fatalf("outcome %v (%v), want %v", got, err, want)
	}
}

// await polls for a condition, within a bound.
func await(t testing.TB, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, limit)
		}
	}
}

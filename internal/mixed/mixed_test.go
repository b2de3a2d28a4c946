//go:build linux

package mixed

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
)

// TestR37MixedQuorums runs the whole suite over quorums of several kinds.
func TestR37MixedQuorums(t *testing.T) {
	red, etc, post := redisServer(t), etcdServer(t), postgresServer(t)
	for _, servers := range [][]server{
		{red, etc, post},
		{red, etc, post, consulServer(t), redisServer(t)},
	} {
		t.Run(kindsOf(servers), func(t *testing.T) {
			acceptance.Suite{TTL: ttl, New: func(t *testing.T) []acceptance.Member { return members(t, servers) }}.Run(t)
		})
	}
}

// TestR37ThreeZonesOfThree nests sets: a majority of zones, each a majority of a
// Redis, an etcd and a PostgreSQL.
func TestR37ThreeZonesOfThree(t *testing.T) {
	space := newSpace()
	var zones []acceptance.Member
	var first []acceptance.Member
	for z := range 3 {
		var stores []quorum.Store
		for _, s := range []server{redisServer(t), etcdServer(t), postgresServer(t)} {
			m := s.member(t, fmt.Sprintf("%s-%d", s.kind, z), space)
			stores = append(stores, m.Store)
			if z == 0 {
				first = append(first, m)
			}
		}
		zone, err := quorum.Combine(quorum.Consensus(), stores...)
		if err != nil {
			t.Fatal(err)
		}
		zones = append(zones, acceptance.Member{Store: zone})
	}
	s := acceptance.Combine(t, zones)
	l := s.Locker(quorum.TTL(20*time.Second), quorum.MaxTTL(20*time.Second), quorum.CallLimit(6*time.Second))
	acceptance.Poll(t, time.Minute, "the set to be declared new", func() bool { return l.Init(t.Context()) == nil })
	last := int64(0)
	for gone := range 3 {
		s.Cut(gone)
		lease := acceptance.Acquire(t, l, "job")
		if lease.Token() <= last {
			t.Fatalf("without zone %d: token %d after %d", gone, lease.Token(), last)
		}
		last = lease.Token()
		acceptance.Held(t, l, "job", fmt.Sprint("without zone ", gone))
		if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
			t.Errorf("extend without zone %d: %v", gone, err)
		}
		_ = lease.Release(t.Context())
	}
	s.Cut()
	// One member of a zone forgets: the zone goes on with the other two.
	first[0].Forget()
	if token := acceptance.Cycle(t, l, "job"); token <= last {
		t.Errorf("after a member forgot: token %d after %d", token, last)
	}
}

// TestR37TenProcessesOverSeveralKinds has ten processes take one lock two hundred
// times each over a Redis, an etcd and a PostgreSQL.
func TestR37TenProcessesOverSeveralKinds(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 10, Rounds: 200,
		Options: []quorum.Option{quorum.TTL(4 * time.Second), quorum.MaxTTL(4 * time.Second), quorum.CallLimit(500 * time.Millisecond)},
		Open: func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
			return quorum.Open(ctx, dsns, openers...)
		},
	}
	if !acceptance.Worker() {
		space := newSpace()
		for i, s := range []server{redisServer(t), etcdServer(t), postgresServer(t)} {
			soak.DSNs = append(soak.DSNs, s.dsn(fmt.Sprintf("%s-%d", s.kind, i), space))
		}
	}
	soak.Run(t)
}

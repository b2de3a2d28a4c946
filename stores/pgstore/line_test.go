//go:build linux

package pgstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/pgstore"
)

func TestF016TheDeadAreNotWaitedFor(t *testing.T) {
	line := acceptance.Line{Dead: 1, Open: func(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
		return quorum.Open(ctx, dsns, pgstore.Opener())
	}}
	if !acceptance.Worker() {
		schema, p := newSchema(), pool(t, shared(t).URL())
		line.DSNs = []string{shared(t).URL() + "&name=a&schema=" + schema}
		line.Queued = func() int {
			return one[int](t, p, fmt.Sprintf("select coalesce(max(cardinality(queue)), 0) from %s.lock where name = 'job'", schema))
		}
	}
	line.Run(t)
}

// TestR12LostNotificationsCostOneLook: what a waiter is told may be lost.
func TestR12LostNotificationsCostOneLook(t *testing.T) {
	for name, lose := range map[string]func(p *testserver.Proxy){
		"what is told does not arrive": func(p *testserver.Proxy) { p.Silence() },
		"the connection is cut":        func(p *testserver.Proxy) { p.Cut() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			schema, p := newSchema(), pool(t, shared(t).URL())
			proxy := testserver.NewProxy(t, shared(t).Addr)
			config, err := pgx.ParseConfig(strings.Replace(shared(t).URL(), shared(t).Addr, proxy.Addr, 1))
			if err != nil {
				t.Fatal(err)
			}
			listener, err := pgstore.New("a", p, pgstore.Schema(schema), pgstore.ListenOn(config))
			if err != nil {
				t.Fatal(err)
			}
			ear := &acceptance.Ear{Store: listener}
			acceptance.LostWake(t, locker(t, store(t, p, pgstore.Schema(schema))), locker(t, ear), ear, func() int {
				return one[int](t, p, fmt.Sprintf("select coalesce(max(cardinality(queue)), 0) from %s.lock where name = 'job'", schema))
			}, func() { lose(proxy) })
		})
	}
}

// locker takes locks in one store.
func locker(t *testing.T, s quorum.Store) *quorum.Locker {
	t.Helper()
	return acceptance.Locker(t, s, quorum.TTL(20*time.Second), quorum.MaxTTL(20*time.Second))
}

// TestR33AWriterPassesReadersThatComeLater: no writer waits for more than the
// readers before it.
func TestR33AWriterPassesReadersThatComeLater(t *testing.T) {
	dsn := shared(t).URL() + "&name=a&pool_max_conns=3&schema=" + newSchema()
	acceptance.Readers(t, func() *quorum.CombinedStore {
		set, err := quorum.Open(t.Context(), []string{dsn}, pgstore.Opener())
		if err != nil {
			t.Fatal(err)
		}
		return set
	})
}

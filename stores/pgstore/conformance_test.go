//go:build linux

package pgstore_test

import (
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/pgstore"
	"github.com/quorumlock/quorum/storetest"
)

// TestConformance runs the suite in real time, all checks side by side on one
// server, each in a schema of its own: once through a pool, and once through a
// *sql.DB over TLS.
func TestConformance(t *testing.T) {
	t.Run("pool", func(t *testing.T) {
		p := pool(t, shared(t).URL()+shortLived)
		conform(t, func(schema string) (*pgstore.Store, error) { return pgstore.New("a", p, pgstore.Schema(schema)) })
	})
	t.Run("a sql.DB over TLS", func(t *testing.T) {
		node := testserver.Postgres(t, testserver.PostgresTLS())
		db, err := sql.Open("pgx", node.URL())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		db.SetMaxOpenConns(16)
		db.SetConnMaxLifetime(time.Second) // as shortLived
		var encrypted bool
		if err := db.QueryRow("select ssl from pg_stat_ssl where pid = pg_backend_pid()").Scan(&encrypted); err != nil || !encrypted {
			t.Fatalf("the session is encrypted: %v, %v", encrypted, err)
		}
		conform(t, func(schema string) (*pgstore.Store, error) { return pgstore.NewDB("a", db, pgstore.Schema(schema)) })
	})
}

// shortLived has a pool drop its connections: a server's process keeps the
// functions of every schema that it has met, and looks at all of them again
// whenever another one is made.
const shortLived = "&pool_max_conn_lifetime=1s"

func conform(t *testing.T, open func(schema string) (*pgstore.Store, error)) {
	var names sync.Map
	in := func(t *testing.T, schema string) *pgstore.Store {
		s, err := open(schema)
		if err == nil {
			err = s.Setup(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		names.Store(s, schema)
		return s
	}
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store { return in(t, newSchema()) },
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			schema, _ := names.Load(first)
			return in(t, schema.(string))
		},
		Parallel: true,
	})
}

// TestConformanceOverTime runs the suite with a clock that moves when told, and
// with a server that forgets at a restart, since it syncs nothing.
func TestConformanceOverTime(t *testing.T) {
	node := testserver.Postgres(t)
	p := pool(t, node.URL()+shortLived)
	var schema string
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			schema = newSchema()
			s := store(t, p, pgstore.Schema(schema))
			stopClock(t, p, schema)
			return s
		},
		Second: func(t *testing.T, _ quorum.Store) quorum.Store { return store(t, p, pgstore.Schema(schema)) },
		Advance: func(d time.Duration) {
			run(t, p, fmt.Sprintf("update %s.time set now = now + %d", schema, d.Microseconds()))
		},
		Restart: func(t *testing.T, s quorum.Store) {
			node.Restart()
			await(t, "the pool to reach the server again", func() bool {
				_, err := s.(*pgstore.Store).Inspect(t.Context(), ask("k", owner()))
				return quorum.OutcomeOf(err) != quorum.OutcomeUndelivered && quorum.OutcomeOf(err) != quorum.OutcomeUnknown
			})
		},
	})
}

// stopClock makes a schema's clock stand at a time that a table holds.
func stopClock(t testing.TB, p *pgxpool.Pool, schema string) {
	t.Helper()
	run(t, p, fmt.Sprintf("create table %[1]s.time as select %[1]s.clock() as now", schema))
	run(t, p, fmt.Sprintf("create or replace function %[1]s.clock() returns bigint language sql volatile as "+
		"$$ select now from %[1]s.time $$", schema))
}

//go:build linux

package pgstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// watch begins a watch of a name that has stood.
func watch(t *testing.T, s *pgstore.Store, key string) (told <-chan quorum.Wake, ended <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	wakes, done := make(chan quorum.Wake, 100), make(chan error, 1)
	go func() { done <- s.Watch(ctx, ask(key, quorum.Owner{}), func(w quorum.Wake) { wakes <- w }) }()
	t.Cleanup(cancel)
	select {
	case w := <-wakes:
		if w.Kind != quorum.WakeStarted {
			t.Fatalf("the watch began with %v", w.Kind)
		}
	case err := <-done:
		t.Fatalf("the watch ended: %v", err)
	}
	return wakes, done
}

func wantChanged(t *testing.T, told <-chan quorum.Wake, after string) {
	t.Helper()
	if w := <-told; w.Kind != quorum.WakeChanged {
		t.Errorf("after %s: %v, want changed", after, w.Kind)
	}
}

func TestR24DeletionByHandIsTold(t *testing.T) {
	s, schema, p := fresh(t)
	told, _ := watch(t, s, "k")
	mustAcquire(t, s, ask("k", owner())) // nobody waits: no mark is left
	run(t, p, fmt.Sprintf("delete from %s.lock where name = 'k'", schema))
	wantChanged(t, told, "a deletion")
}

// TestWatchIsToldOnlyWhereSomebodyWaits counts notifications, whose price grows
// with the listeners.
func TestWatchIsToldOnlyWhereSomebodyWaits(t *testing.T) {
	s, _, _ := fresh(t)
	told, _ := watch(t, s, "k")
	other, _ := watch(t, s, "other")
	cycle := func(key string, waits bool) {
		r := ask(key, owner())
		mustAcquire(t, s, r)
		if waits {
			w := ask(key, owner())
			w.Wait = quorum.WaitWatch
			_, err := s.Acquire(t.Context(), w)
			wantOutcome(t, err, quorum.OutcomeContended)
		}
		mustRelease(t, s, r)
	}
	cycle("k", false)
	cycle("k", true)
	wantChanged(t, told, "a release that somebody waits for")
	cycle("k", false)
	cycle("other", true)
	wantChanged(t, other, "a release of another name")
	if len(told) != 0 {
		t.Errorf("%d notifications too many", len(told))
	}
}

func TestWatchOutlivesItsConnection(t *testing.T) {
	s, schema, p := fresh(t)
	told, _ := watch(t, s, "k")
	broken := one[int](t, p, "select count(*) from (select pg_terminate_backend(pid) from pg_stat_activity where query = $1) k",
		fmt.Sprintf(`listen "%s:wake"`, schema))
	if broken != 1 {
		t.Fatalf("%d connections listen, want 1", broken)
	}
	wantChanged(t, told, "a broken connection, over which one may have been missed")
	run(t, p, fmt.Sprintf("select pg_notify('%s:wake', encode('k', 'hex'))", schema))
	wantChanged(t, told, "the connection is there again")
}

func TestWatchEndsWhenTheServerStaysAway(t *testing.T) {
	node := testserver.Postgres(t)
	s := store(t, pool(t, node.URL()))
	_, ended := watch(t, s, "k")
	node.Stop()
	if err := <-ended; err == nil || errors.Is(err, quorum.ErrHeld) {
		t.Errorf("the watch of a server that is gone ended with %v", err)
	}
}

func TestWatchThroughDatabaseSQL(t *testing.T) {
	_, schema, p := fresh(t)
	db, err := sql.Open("pgx", shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := pgstore.NewDB("a", db, pgstore.Schema(schema))
	if err != nil {
		t.Fatal(err)
	}
	told, _ := watch(t, s, "k")
	run(t, p, fmt.Sprintf("select pg_notify('%s:wake', encode('k', 'hex'))", schema))
	wantChanged(t, told, "a notification")
}

// TestF182PoolerInTransactionMode runs through pgbouncer with two connections to
// the server.
func TestF182PoolerInTransactionMode(t *testing.T) {
	node := testserver.Postgres(t)
	url := testserver.PgBouncer(t, node, 2)
	direct := pool(t, node.URL())
	q := pool(t, url+"&default_query_exec_mode=describe_exec") // the store's statements name a mode of their own
	s := store(t, q)
	declareNew(t, s)
	errs := make(chan error)
	for i := range 8 {
		go func() {
			for range 100 / 8 * 2 {
				r := ask(fmt.Sprint("k-", i), owner())
				if _, err := s.Acquire(t.Context(), r); err != nil {
					errs <- err
					return
				}
				if err := s.Release(t.Context(), r); err != nil && quorum.OutcomeOf(err) != quorum.OutcomeNotHeld {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	token := mustAcquire(t, s, brief("held", owner())).Token
	q.Close() // the client dies
	survivor := store(t, pool(t, url))
	await(t, "the dead one's vote to end", func() bool {
		g, err := survivor.Acquire(t.Context(), brief("held", owner()))
		return err == nil && g.Token == token+1
	})
	if n := one[int](t, direct, "select count(*) from pg_locks where locktype = 'advisory'"); n != 0 {
		t.Errorf("%d advisory locks are left", n)
	}
	err := survivor.Watch(t.Context(), ask("k", quorum.Owner{}), func(quorum.Wake) {})
	if err == nil || !strings.Contains(err.Error(), "ListenOn") {
		t.Errorf("a watch through the pooler: %v", err)
	}
	config, err := pgx.ParseConfig(node.URL())
	if err != nil {
		t.Fatal(err)
	}
	around, err := pgstore.New("a", pool(t, url), pgstore.ListenOn(config))
	if err != nil {
		t.Fatal(err)
	}
	told, _ := watch(t, around, "k")
	run(t, direct, "select pg_notify('quorum:wake', encode('k', 'hex'))")
	wantChanged(t, told, "a notification around the pooler")
}

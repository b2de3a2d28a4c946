//go:build linux

package pgstore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/pgstore"
)

func TestF038NamesAreBytesAndDoNotMeet(t *testing.T) {
	s, schema, p := fresh(t)
	names := []string{"plumless", "buckeroo", "codding", "gnu", "e\u0301", "\u00e9", "a", "A", "a ", `\x61`, "'; drop table lock; --", strings.Repeat("\u00e9", 256)}
	for _, name := range names {
		mustAcquire(t, s, ask(name, owner()))
	}
	if n := one[int](t, p, fmt.Sprintf("select count(*) from %s.lock", schema)); n != len(names) {
		t.Errorf("%d rows for %d names", n, len(names))
	}
}

func TestF034SetupLeavesLiveRowsAlone(t *testing.T) {
	s, schema, p := fresh(t)
	r := ask("k", owner())
	token := mustAcquire(t, s, r).Token
	run(t, p, fmt.Sprintf("drop function %s.version()", schema)) // as another version's would be
	errs := make(chan error)
	for range 20 {
		go func() {
			other, err := pgstore.New("a", p, pgstore.Schema(schema))
			if err == nil {
				err = other.Setup(t.Context())
			}
			errs <- err
		}()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if g, err := s.Extend(t.Context(), r); err != nil || g.Token != token {
		t.Errorf("extend after twenty Setups: %+v, %v", g, err)
	}
	if n := one[int64](t, p, fmt.Sprintf("select counter from %s.lock", schema)); n != token {
		t.Errorf("the counter is %d, and was %d", n, token)
	}
}

func TestSetupWithoutRights(t *testing.T) {
	_, schema, p := fresh(t)
	plain := newSchema()
	run(t, p, fmt.Sprintf("create role %s login", plain))
	run(t, p, fmt.Sprintf("grant usage on schema %s to %s", schema, plain))
	run(t, p, fmt.Sprintf("grant select, insert, update, delete on %[1]s.record, %[1]s.lock to %[2]s", schema, plain))
	q := pool(t, strings.Replace(shared(t).URL(), "postgres@", plain+"@", 1))
	s := store(t, q, pgstore.Schema(schema)) // Setup finds everything
	mustAcquire(t, s, ask("k", owner()))

	other, err := pgstore.New("a", q, pgstore.Schema(newSchema()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = other.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !strings.Contains(err.Error(), "call Setup") {
		t.Errorf("acquire without tables: %v", err)
	}
	if err := other.Setup(t.Context()); err == nil || !strings.Contains(err.Error(), "may not create the schema") {
		t.Errorf("setup without rights: %v", err)
	}
}

// TestDeletedRowFreesTheNameAndKeepsTheToken is what people do to a lock that is
// stuck.
func TestDeletedRowFreesTheNameAndKeepsTheToken(t *testing.T) {
	s, schema, p := fresh(t)
	for _, mode := range []quorum.Mode{quorum.ModeExclusive, quorum.ModeShared} {
		r := ask("k", owner())
		r.Mode = mode
		token := mustAcquire(t, s, r).Token
		run(t, p, fmt.Sprintf("delete from %s.lock where name = 'k'", schema))
		if _, err := s.Extend(t.Context(), r); quorum.OutcomeOf(err) != quorum.OutcomeNotHeld {
			t.Errorf("extend of a deleted vote: %v", err)
		}
		next := ask("k", owner())
		if g := mustAcquire(t, s, next); g.Token != token+1 {
			t.Errorf("%v: token %d after %d", mode, g.Token, token)
		}
		mustRelease(t, s, next)
	}
}

func TestTruncateCountsAsForgetting(t *testing.T) {
	s, schema, p := fresh(t)
	mustAcquire(t, s, ask("k", owner()))
	run(t, p, fmt.Sprintf("truncate %s.lock", schema))
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
}

func TestF023VotesEndByEpochInEveryZone(t *testing.T) {
	s, schema, _ := fresh(t)
	r := ask("k", owner())
	mustAcquire(t, s, r)
	for _, zone := range []string{"UTC-1", "UTC+3", "America/New_York"} {
		q := pool(t, shared(t).URL()+"&timezone="+zone)
		_, err := store(t, q, pgstore.Schema(schema)).Acquire(t.Context(), ask("k", owner()))
		refused := (*quorum.RefusedError)(nil)
		if !errors.As(err, &refused) || refused.Outcome != quorum.OutcomeContended || refused.Left > r.TTL {
			t.Errorf("in %s: %v", zone, err)
		}
	}
}

// TestRefusalTakesNoTransaction shows that a refusal costs the server's disk
// nothing, and that synchronous_commit is forced where something is granted.
func TestRefusalTakesNoTransaction(t *testing.T) {
	s, _, p := fresh(t)
	mustAcquire(t, s, ask("k", owner()))
	r := ask("held", owner())
	before := one[int64](t, p, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
	mustAcquire(t, s, r)
	after := one[int64](t, p, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint")
	if after != before+1 {
		t.Errorf("an acquisition took %d transaction ids, want 1", after-before)
	}
	for range 20 {
		rival := ask("held", owner())
		_, err := s.Acquire(t.Context(), rival)
		wantOutcome(t, err, quorum.OutcomeContended)
		wantOutcome(t, s.Release(t.Context(), rival), quorum.OutcomeNotHeld)
	}
	if n := one[int64](t, p, "select pg_snapshot_xmax(pg_current_snapshot())::text::bigint"); n != after {
		t.Errorf("20 refusals took %d transaction ids, want none", n-after)
	}
}

func TestSynchronousCommitIsForced(t *testing.T) {
	_, schema, p := fresh(t)
	got := one[string](t, p, fmt.Sprintf("select current_setting('synchronous_commit') from (select set_config('synchronous_commit', "+
		"'off', true)) a, lateral (select %s.begin_call(1000)) b", schema))
	if got != "on" {
		t.Errorf("synchronous_commit is %q in a verb", got)
	}
}

func TestLockTimeout(t *testing.T) {
	s, schema, p := fresh(t)
	r := ask("k", owner())
	mustAcquire(t, s, r)
	tx, err := p.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), fmt.Sprintf("select from %s.lock for update", schema)); err != nil {
		t.Fatal(err)
	}
	r.Limit = 500 * time.Millisecond
	_, err = s.Extend(t.Context(), r)
	// The server's word and the client's own limit race.
	if o := quorum.OutcomeOf(err); o != quorum.OutcomeUndelivered && o != quorum.OutcomeUnknown {
		t.Errorf("extend of a row that somebody holds: %v", err)
	}
	if strings.Contains(fmt.Sprint(err), r.Owner.Hex()) {
		t.Errorf("the error shows the owner: %v", err)
	}
}

// TestSerializableSessionsAreUndelivered is about a database whose default
// isolation shows old rows.
func TestSerializableSessionsAreUndelivered(t *testing.T) {
	s, schema, _ := fresh(t)
	q := pool(t, shared(t).URL()+"&default_transaction_isolation=serializable")
	other := store(t, q, pgstore.Schema(schema))
	errs := make(chan error)
	for range 8 {
		go func() {
			var failed error
			for range 30 {
				r := brief("k", owner())
				if _, err := other.Acquire(t.Context(), r); err == nil {
					_ = other.Release(t.Context(), r)
				} else if o := quorum.OutcomeOf(err); o != quorum.OutcomeContended && o != quorum.OutcomeUndelivered {
					failed = err
				}
			}
			errs <- failed
		}()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Errorf("an error that says nothing of the outcome: %v", err)
		}
	}
	await(t, "the last vote's end", func() bool {
		_, err := s.Acquire(t.Context(), brief("k", owner()))
		return err == nil
	})
}

func TestBadSettingsFailAtOnce(t *testing.T) {
	p := pool(t, "postgres://postgres@127.0.0.1:1/postgres")
	for _, build := range []func() (*pgstore.Store, error){
		func() (*pgstore.Store, error) { return pgstore.New("", p) },
		func() (*pgstore.Store, error) { return pgstore.New("a", nil) },
		func() (*pgstore.Store, error) { return pgstore.NewDB("a", nil) },
		func() (*pgstore.Store, error) { return pgstore.New("a", p, pgstore.Schema("")) },
		func() (*pgstore.Store, error) { return pgstore.New("a", p, pgstore.Schema("pg_x")) },
		func() (*pgstore.Store, error) { return pgstore.New("a", p, pgstore.Schema(`a"b`)) },
		func() (*pgstore.Store, error) { return pgstore.New("a", p, pgstore.ListenOn(nil)) },
	} {
		if _, err := build(); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%v, want ErrInvalidOption", err)
		}
	}
	s, err := pgstore.New("a", p)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
}

func TestR57UsersPoolStaysOpen(t *testing.T) {
	s, schema, p := fresh(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustAcquire(t, s, ask("k", owner()))
	db, err := sql.Open("pgx", shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	other, err := pgstore.NewDB("a", db, pgstore.Schema(schema))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(other.Close(), db.PingContext(t.Context()), p.Ping(t.Context())); err != nil {
		t.Error(err)
	}
	if l := other.Limits(); l.Doubles || !l.Watches || len(other.Advice()) != 0 {
		t.Errorf("through pgx's driver: %+v, advice %q", l, other.Advice())
	}
}

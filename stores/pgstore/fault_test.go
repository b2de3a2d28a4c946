//go:build linux

package pgstore_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// syncing is a server as it is run in earnest.
func syncing(t *testing.T, options ...testserver.PostgresOption) (*testserver.PostgresNode, *pgstore.Store, *pgxpool.Pool) {
	t.Helper()
	node := testserver.Postgres(t, append(options, testserver.PostgresConfig("fsync = on"))...)
	p := pool(t, node.URL())
	s := store(t, p)
	acceptance.DeclareNew(t, s, brief("", quorum.Owner{}))
	return node, s, p
}

// settled asks until the server gives a clear answer again.
func settled(t *testing.T, what string, call func() error) error {
	t.Helper()
	var err error
	await(t, what, func() bool {
		err = call()
		return quorum.OutcomeOf(err) != quorum.OutcomeUnknown && quorum.OutcomeOf(err) != quorum.OutcomeUndelivered
	})
	return err
}

func TestRestartForgetsNothing(t *testing.T) {
	node, s, _ := syncing(t)
	warm := brief("", quorum.Owner{})
	token := int64(0)
	for _, how := range []struct {
		name string
		down func()
	}{{"killed", node.Stop}, {"restarted", func() {}}} {
		mustAcquire(t, s, brief("warm", owner()))
		r := brief("k", owner())
		await(t, "the name to be free", func() bool {
			g, err := s.Acquire(t.Context(), r)
			token = g.Token
			return err == nil
		})
		how.down()
		node.Restart()
		err := settled(t, "the server", func() error {
			_, err := s.ReadStep(t.Context(), warm)
			return err
		})
		if step, again := s.ReadStep(t.Context(), warm); err != nil || again != nil || step.Quarantine != "" {
			t.Fatalf("%s: %+v, %v, %v; want no quarantine", how.name, step, err, again)
		}
		next := brief("k", owner())
		await(t, "the vote's end", func() bool {
			g, err := s.Acquire(t.Context(), next)
			if err == nil && g.Token != token+1 {
				t.Errorf("%s: token %d after %d", how.name, g.Token, token)
			}
			return err == nil
		})
		mustRelease(t, s, next)
	}
}

func TestServerThatSyncsNothingForgetsAtARestart(t *testing.T) {
	node := testserver.Postgres(t)
	s := store(t, pool(t, node.URL()))
	acceptance.DeclareNew(t, s, brief("", quorum.Owner{}))
	token := mustAcquire(t, s, brief("k", owner())).Token
	if advice := s.Advice(); len(advice) != 1 || !strings.Contains(advice[0], "fsync is off") {
		t.Errorf("advice %q", advice)
	}
	node.Restart()
	err := settled(t, "the server", func() error {
		_, err := s.Acquire(t.Context(), brief("k", owner()))
		return err
	})
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	leave(t, s)
	if g := mustAcquire(t, s, brief("k", owner())); g.Token <= token {
		t.Errorf("token %d after %d", g.Token, token)
	}
}

// leave takes a store out of quarantine as a lone one leaves.
func leave(t *testing.T, s *pgstore.Store) {
	t.Helper()
	var step quorum.Step
	await(t, "the end of the quarantine", func() bool {
		var err error
		step, err = s.ReadStep(t.Context(), brief("", quorum.Owner{}))
		return err == nil && step.Over
	})
	o := quorum.Raise{Quarantine: step.Quarantine, Step: step.Step, Alone: true}
	if err := s.Raise(t.Context(), brief("", quorum.Owner{}), o); err != nil {
		t.Fatal(err)
	}
}

func TestServerThatStallsIsUnknown(t *testing.T) {
	node, s, _ := syncing(t)
	mustAcquire(t, s, brief("warm", owner()))
	node.Stall()
	r := brief("k", owner())
	r.Limit = 500 * time.Millisecond // enough to send it, on any machine
	_, err := s.Acquire(t.Context(), r)
	node.Resume()
	wantOutcome(t, err, quorum.OutcomeUnknown)
	r.Limit = 10 * time.Second
	err = settled(t, "the server", func() error {
		_, err := s.Acquire(t.Context(), r)
		return err
	})
	if err != nil {
		t.Errorf("the same attempt again: %v", err)
	}
}

// TestF190StandbyRefusesAndItsPromotionIsQuarantined: no decision is read from a
// standby, and one that is promoted may lack what the primary acknowledged.
func TestF190StandbyRefusesAndItsPromotionIsQuarantined(t *testing.T) {
	primary, s, p := syncing(t, testserver.PostgresConfig("wal_level = replica", "max_wal_senders = 4"))
	token := mustAcquire(t, s, brief("k", owner())).Token
	standby := testserver.Postgres(t, testserver.StandbyOf(primary), testserver.PostgresConfig("fsync = on"))
	q := pool(t, standby.URL())
	other, err := pgstore.New("a", q)
	if err != nil {
		t.Fatal(err)
	}
	r := brief("k", owner())
	_, acquired := other.Acquire(t.Context(), r)
	_, extended := other.Extend(t.Context(), r)
	released := other.Release(t.Context(), r)
	_, read := other.ReadStep(t.Context(), r)
	for verb, err := range map[string]error{"acquire": acquired, "extend": extended, "release": released, "read step": read} {
		if quorum.OutcomeOf(err) != quorum.OutcomeUndelivered || !strings.Contains(err.Error(), "standby") {
			t.Errorf("%s on a standby: %v", verb, err)
		}
	}
	lsn := one[string](t, p, "select pg_current_wal_flush_lsn()::text")
	await(t, "replication", func() bool {
		return one[bool](t, q, "select pg_last_wal_replay_lsn() >= $1::text::pg_lsn", lsn)
	})
	primary.Stop()
	standby.Promote()
	_, err = other.Acquire(t.Context(), brief("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	leave(t, other)
	var g quorum.Grant
	await(t, "the old vote's end", func() bool {
		g, err = other.Acquire(t.Context(), brief("k", owner()))
		return err == nil
	})
	if g.Token <= token {
		t.Errorf("token %d after the promotion, %d before", g.Token, token)
	}
	if !strings.HasSuffix(g.Server, "/00000002") {
		t.Errorf("the server is %s, want the second timeline", g.Server)
	}
}

func TestRestoredBackupIsSeenAndQuarantined(t *testing.T) {
	node, s, _ := syncing(t)
	mustAcquire(t, s, brief("k", owner()))
	disk := node.CopyDisk()
	r := brief("k2", owner())
	err := settled(t, "the server", func() error {
		_, err := s.Acquire(t.Context(), r)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		mustAcquire(t, s, brief(fmt.Sprint("later-", i), owner()))
	}
	for i := range 2 { // the same backup once more is another quarantine
		node.RestartFrom(disk)
		err = settled(t, "the server", func() error {
			_, err := s.Acquire(t.Context(), brief("k2", owner()))
			return err
		})
		refused := (*quorum.RefusedError)(nil)
		if !errors.As(err, &refused) || refused.Outcome != quorum.OutcomeQuarantined {
			t.Fatalf("restored for the %d. time: %v", i+1, err)
		}
	}
	leave(t, s)
	mustAcquire(t, s, brief("k3", owner()))
	// Another client that saw the first state does not begin it again.
	if step, err := s.ReadStep(t.Context(), brief("", quorum.Owner{})); err != nil || step.Quarantine != "" {
		t.Errorf("after leaving: %+v, %v", step, err)
	}
}

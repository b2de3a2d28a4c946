package minitest

import (
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
	"github.com/quorumlock/quorum/stores/redisstore/internal/trial"
	"github.com/quorumlock/quorum/storetest"
)

// embedded is a server whose clock stands still. Its keys expire by being told
// how much time passed, so its clock cannot go back.
func embedded(t *testing.T) (*miniredis.Miniredis, *redis.Client, *trial.Clock) {
	t.Helper()
	m := miniredis.RunT(t)
	m.SetTime(trial.Noon)
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = c.Close() })
	return m, c, &trial.Clock{Now: trial.Noon, Move: func(to time.Time, by time.Duration) {
		m.SetTime(to)
		m.FastForward(by)
	}}
}

func store(t *testing.T, c *redis.Client, life string) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New("a", c, redisstore.RunID(life))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) {
	var m *miniredis.Miniredis
	var c *redis.Client
	var clock *trial.Clock
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			m, c, clock = embedded(t)
			return store(t, c, "life-1")
		},
		Second:  func(t *testing.T, _ quorum.Store) quorum.Store { return store(t, c, "life-1") },
		Advance: func(d time.Duration) { clock.Advance(d) },
		Restart: func(*testing.T, quorum.Store) { m.FlushAll() },
	})
}

func TestScriptsAgreeWithTheModel(t *testing.T) {
	_, c, clock := embedded(t)
	run := &trial.Run{Client: c, Clock: clock, Life: "life-1", Embedded: true}
	run.Play(t, 1500)
}

// TestR46AnotherRunIDIsAnotherLife is how an embedder says that its server
// restarted.
func TestR46AnotherRunIDIsAnotherLife(t *testing.T) {
	_, c, _ := embedded(t)
	r := quorum.Request{
		Key: "k", Owner: quorum.Owner{Attempt: 1}, TTL: time.Second, MaxTTL: time.Minute, Set: 1,
	}
	s := store(t, c, "life-1")
	step, err := s.ReadStep(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Raise(t.Context(), r, quorum.Raise{Quarantine: step.Quarantine, Fresh: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	_, err = store(t, c, "life-2").Acquire(t.Context(), r)
	if got := quorum.OutcomeOf(err); got != quorum.OutcomeQuarantined {
		t.Errorf("acquire after another start: %v (%v), want quarantined", got, err)
	}
}

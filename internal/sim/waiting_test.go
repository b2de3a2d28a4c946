package sim

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// queues is any world whose stores keep queues, or only tell.
func queues(seed uint64) Config { return Config{Watches: true, Queues: seed%4 > 0} }

// No seed breaks a claim where clients wait in the stores' queues, under every
// fault, with turns and wakes that are late, lost and doubled; and once all is
// calm whoever waits gets in.
func TestR13QueuesUnderFaults(t *testing.T) {
	first, n := firstSeed(t), seedCount(t)/4
	total, failed := &Report{}, 0
	for i := range n {
		seed := first + i
		r := RunSeed(seed, queues(seed))
		total.Add(r)
		if len(r.Violations) > 0 {
			least := Shrink(r, func(cfg Config) *Report { return Run(cfg, Seeded(seed)) })
			t.Errorf("seed %d: %v\nthe smallest list of faults that still does it:\n%v", seed, r.Violations[0], least.Plan)
			if failed++; failed == 3 {
				break
			}
			total.Violations = nil
		}
	}
	t.Logf("\n%v", total)
}

// queued lets the clients of a world wait in the stores' queues.
func queued(c *Config) { c.Watches, c.Queues = true, true }

// lines is a world in which nothing goes wrong and everybody waits for one name
// all the time, so that no wait is long.
func lines(order core.Order) Config {
	c := Config{
		Stores: 3, Clients: 6, Keys: 1, TTL: 10 * time.Second, MaxTTL: 10 * time.Second, Duration: 10 * time.Second,
		Watches: true, Queues: true, Order: order, KeepOrder: true, Longest: 2 * time.Second,
		Work: Work{Think: time.Millisecond, Hold: 20 * time.Millisecond, Wait: 8 * time.Second},
	}
	c.Plan.Noise = Noise{Base: time.Millisecond, Spread: 20 * time.Millisecond}
	return c
}

// dying is the same where those who wait die all the time.
func dying() Config {
	c := lines(core.InOrder)
	c.TTL, c.MaxTTL, c.Only, c.Longest = time.Second, time.Second, []FaultKind{Kill}, 4*time.Second
	return c
}

// steadily runs a seed in which nothing goes wrong but the noise.
func steadily(seed uint64, base Config) *Report {
	cfg := Random(base, Seeded(seed))
	cfg.Swarm, cfg.Skew = false, 0
	return Run(cfg, Seeded(seed))
}

// Where nothing goes wrong nobody waits for longer than the others need, and
// where others die, for not much longer.
func TestR13NobodyStarves(t *testing.T) {
	for seed := range uint64(10) {
		if r := RunSeed(seed, dying()); len(r.Violations) > 0 {
			t.Fatalf("seed %d: %v\n%v", seed, r.Violations[0], r.Plan)
		}
	}
	for order := core.InOrder; order <= core.AllAtOnce; order++ {
		total := &Report{}
		for seed := range uint64(10) {
			r := steadily(seed, lines(order))
			if len(r.Violations) > 0 {
				t.Fatalf("%v, seed %d: %v", order, seed, r.Violations[0])
			}
			total.Add(r)
		}
		t.Logf("%v: %v", order, total)
	}
}

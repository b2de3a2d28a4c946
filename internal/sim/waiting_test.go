package sim

import (
	"slices"
	"strconv"
	"strings"
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

// Where nothing is lost they are served in the order of their asking; readers who
// stand next to each other go together, and none passes a writer that asked
// before it.
func TestR13ServedInTheOrderOfAsking(t *testing.T) {
	for _, c := range []struct {
		name  string
		modes string // of those who wait, r or w
		order core.Order
		want  string // who holds, in order; those that hold together are sorted
	}{
		{"writers", "wwwwwww", core.InOrder, "0 1 2 3 4 5 6"},
		{"writers, first then rest", "wwwwwww", core.FirstThenRest, "0 1 2 3 4 5 6"},
		{"writers, all at once", "wwwwwww", core.AllAtOnce, "0 1 2 3 4 5 6"},
		{"R33 readers and writers", "rrwrwrr", core.InOrder, "01 2 3 4 56"},
		{"R33 a writer between readers, all at once", "rwr", core.AllAtOnce, "0 1 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(5) {
				cfg := Config{
					Stores: 5, Clients: 1 + len(c.modes), Keys: 1, TTL: 10 * time.Second, Duration: 30 * time.Second, Open: true,
					Watches: true, Queues: true, Order: c.order,
				}
				cfg.Plan.Noise = Noise{Base: time.Millisecond, Spread: 20 * time.Millisecond}
				var got []string
				last := time.Duration(-1)
				cfg.Program = func(cl *Client) {
					cl.stand(c.modes, func(who string) {
						if now := cl.w.now; last >= 0 && now-last < 200*time.Millisecond {
							both := []string{got[len(got)-1], who}
							slices.Sort(both)
							got[len(got)-1] = strings.Join(both, "")
						} else {
							got = append(got, who)
						}
						last = cl.w.now
					})
				}
				if r := Run(cfg, Seeded(seed)); len(r.Violations) > 0 {
					t.Fatalf("seed %d: %v", seed, r.Violations[0])
				}
				if text := strings.Join(got, " "); text != c.want {
					t.Errorf("seed %d: they were let in as %q, want %q", seed, text, c.want)
				}
			}
		})
	}
}

// stand has a client ask a tenth of a second after the one before it, and hold
// for half a second. The first holds for longer, so that all others wait.
func (c *Client) stand(modes string, in func(who string)) {
	hold, r := 5*time.Second, Request{Wait: -1, Order: c.w.cfg.Order}
	if i := c.id - 1; i >= 0 {
		hold = 500 * time.Millisecond
		if modes[i] == 'r' {
			r.Mode = core.Shared
		}
	}
	c.After(time.Duration(c.id)*100*time.Millisecond, func() {
		c.Acquire(r, func(l *Lease, n core.Notice) {
			if n.Kind != core.NoticeAcquired {
				return
			}
			if c.id > 0 {
				in(strconv.Itoa(c.id - 1))
			}
			c.After(hold, l.Release)
		})
	})
}

package sim

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorum/internal/core"
)

// A clock shows a reading no earlier than when says that it will, and no later.
func TestTickerIsInverted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := ticker{read: rapid.Int64Range(0, int64(time.Hour)).Draw(t, "read"), parts: rapid.Uint64Range(1, 3*million).Draw(t, "parts")}
		reading := c.read + rapid.Int64Range(1, int64(time.Hour)).Draw(t, "ahead")
		at := c.when(reading)
		if c.now(at) < reading || c.now(at-1) >= reading {
			t.Fatalf("%d is shown at %d: there it shows %d, and %d before", reading, at, c.now(at), c.now(at-1))
		}
	})
}

func TestTickerBends(t *testing.T) {
	c := ticker{parts: million}
	c.bend(10*time.Second, -3*time.Second, 0)
	if got := time.Duration(c.now(time.Hour)); got != 7*time.Second {
		t.Errorf("stopped at 10 s and put back by 3 s it shows %v", got)
	}
	if got := c.when(int64(8 * time.Second)); got != never {
		t.Errorf("it shows 8 s at %v, although it stands", got)
	}
	c.bend(20*time.Second, 0, 2*million)
	if got := time.Duration(c.now(21 * time.Second)); got != 9*time.Second {
		t.Errorf("at twice the rate it shows %v after a second", got)
	}
}

// Events come in order of time, and those of one instant in order of their keys.
func TestQueueOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		times := rapid.SliceOf(rapid.IntRange(0, 5)).Draw(t, "times")
		var q queue
		for i, at := range times {
			q.push(&event{at: time.Duration(at), index: int32(i)}, uint64(i))
		}
		var got, want []int
		for i := range times {
			want = append(want, i)
		}
		slices.SortStableFunc(want, func(a, b int) int { return times[a] - times[b] })
		for !q.empty() {
			got = append(got, int(q.pop().index))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v came as %v", times, got)
		}
	})
}

func TestSpreadQuantiles(t *testing.T) {
	var s Spread
	for i := range 1000 {
		s.Count(time.Duration(i+1) * time.Millisecond)
	}
	for part, want := range map[float64]time.Duration{0.01: 10 * time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond} {
		if got := s.Quantile(part); got > want || got < want-want/7 {
			t.Errorf("quantile %v is %v, not within an eighth of %v", part, got, want)
		}
	}
	if s.Max != time.Second || s.N != 1000 {
		t.Errorf("most %v of %d", s.Max, s.N)
	}
}

// The clocks of a world differ from each other by no more than the allowance.
func TestClocksKeepTheAllowance(t *testing.T) {
	for seed := range uint64(200) {
		w := NewWorld(Config{Rates: true}, Seeded(seed))
		for i := range w.nodes {
			for _, c := range w.clients {
				store, client := float64(w.nodes[i].clock.parts), float64(c.clock.parts)
				if client/store < 0.99 {
					t.Fatalf("seed %d: a store's clock runs at %v, a client's at %v", seed, store, client)
				}
			}
		}
	}
}

// A plan keeps to the assumption on forgetting: a minority at a time.
func TestF068PlansForgetAMinorityAtATime(t *testing.T) {
	cfg := Config{Stores: 3}.filled()
	d := drawer{cfg: &cfg}
	first := Fault{Kind: Forget, At: time.Minute, Stores: core.Set(0).With(0)}
	for _, c := range []struct {
		at   time.Duration
		want bool
	}{{time.Minute + time.Second, false}, {time.Minute + 10*cfg.MaxTTL, true}} {
		if got := d.mayForget([]Fault{first}, Fault{Kind: Restart, At: c.at, Stores: core.Set(0).With(1)}); got != c.want {
			t.Errorf("another store may forget at %v: %v", c.at, got)
		}
	}
	if d.mayForget(nil, Fault{Kind: Forget, Stores: core.Set(3)}) {
		t.Error("two of three may forget at once")
	}
}

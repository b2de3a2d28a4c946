package core_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

func TestF010ValidityAfterAcquire(t *testing.T) {
	start := clock.Instant(3 * time.Hour)
	now := start.Add(500 * time.Millisecond)
	if left := won(t, 0, start, now).Until().Sub(now); left != 9398*time.Millisecond {
		t.Errorf("%v left, want 9.398s", left)
	}
}

// Validity after a renewal counts from when its requests left.
func TestF011ValidityAfterRenewal(t *testing.T) {
	c := config(3, 0)
	c.Request.TTL, c.Within = time.Second, time.Second
	l := core.NewLease(core.LeaseConfig{Config: c, Wait: -1, RenewEvery: time.Second / 3})
	answer := func(now clock.Instant) {
		for _, call := range l.Calls() {
			l.Answer(now, call.Store, call.Seq, core.Answer{Outcome: core.Granted, Token: 1})
		}
	}
	l.Start(0)
	for range 3 {
		answer(0)
	}
	sent := l.Next()
	l.Wake(sent)
	now := sent.Add(400 * time.Millisecond)
	answer(now)
	if left := l.Until().Sub(now); left != 588*time.Millisecond {
		t.Errorf("%v left, want 588ms", left)
	}
}

// The property of R17 over random times: what is left is never above TTL, less
// the time since the first request left, less drift; and it is exactly that.
func TestR17NeverMoreThanIsLeft(t *testing.T) {
	rng := rand.New(rand.NewPCG(17, 17))
	for range 20_000 {
		ttl := time.Duration(rng.Int64N(int64(time.Hour))) + time.Microsecond
		ppm := rng.Int64N(100_000)
		fixed := time.Duration(rng.Int64N(int64(10 * time.Millisecond)))
		gone := time.Duration(rng.Int64N(int64(ttl)))
		c := config(1, 0)
		c.Request.TTL, c.Within, c.CallLimit, c.DriftPPM, c.DriftFixed = ttl, ttl, ttl, ppm, fixed
		q := core.NewQuorum(c)
		start := clock.Instant(rng.Int64N(1 << 50))
		q.Begin(start)
		call := q.Calls()[0]
		now := start.Add(gone)
		q.Answer(now, 0, call.Seq, core.Answer{Outcome: core.Granted, Token: 1})
		drift := time.Duration((int64(ttl)*ppm+999_999)/1_000_000) + fixed // rounded up
		least := ttl - gone - drift
		if held := q.Phase() == core.Held; held != (least > 0) {
			t.Fatalf("TTL %v, gone %v, drift %v: held %v", ttl, gone, drift, held)
		} else if left := q.Until().Sub(now); held && left != least {
			t.Fatalf("TTL %v, gone %v, drift %v: %v left, want %v", ttl, gone, drift, left, least)
		}
	}
}

// Full jitter: the pause after the n-th attempt lies below min<<(n-1), and
// below max, and comes near both ends.
func TestR11BackoffBounds(t *testing.T) {
	const low, high = 10 * time.Millisecond, time.Second
	var least, most [12]time.Duration
	for i := range least {
		least[i] = time.Hour
	}
	for seed := range uint64(400) {
		l := core.NewLease(core.LeaseConfig{Config: config(1, 0), Wait: -1, BackoffMin: low, BackoffMax: high, Seed: seed * 7919})
		now := clock.Instant(0)
		l.Start(now)
		for n := range least {
			call := l.Calls()[0]
			l.Answer(now, call.Store, call.Seq, core.Answer{Outcome: core.Contended, Clean: true})
			tries := l.Quorum().Attempt()
			began := now
			for l.Quorum().Attempt() == tries { // a wait also says so once in a while
				now = max(now, l.Next())
				l.Wake(now)
			}
			least[n], most[n] = min(least[n], now.Sub(began)), max(most[n], now.Sub(began))
		}
	}
	for n := range least {
		bound := min(low<<n, high)
		if most[n] >= bound || most[n] < bound*9/10 || least[n] > bound/10 {
			t.Errorf("pause %d lay between %v and %v, want nearly all of 0 to %v", n+1, least[n], most[n], bound)
		}
	}
}

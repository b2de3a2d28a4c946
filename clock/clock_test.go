package clock_test

import (
	"math"
	"testing"
	"time"

	"github.com/quorumlock/quorum/clock"
)

func TestInstantAddSaturates(t *testing.T) {
	for _, tc := range []struct {
		at   clock.Instant
		add  time.Duration
		want clock.Instant
	}{
		{1, 2, 3},
		{5, -7, -2},
		{math.MaxInt64 - 1, 10, math.MaxInt64},
		{math.MinInt64 + 1, -10, math.MinInt64},
	} {
		if got := tc.at.Add(tc.add); got != tc.want {
			t.Errorf("Instant(%d).Add(%d) = %d, want %d", tc.at, tc.add, got, tc.want)
		}
	}
}

func TestInstantSubSaturates(t *testing.T) {
	for _, tc := range []struct {
		a, b clock.Instant
		want time.Duration
	}{
		{7, 9, -2},
		{-math.MaxInt64, 10, math.MinInt64},
		{math.MaxInt64, -10, math.MaxInt64},
	} {
		if got := tc.a.Sub(tc.b); got != tc.want {
			t.Errorf("Instant(%d).Sub(%d) = %d, want %d", tc.a, tc.b, got, tc.want)
		}
	}
}

func TestManualMovesOnlyWhenTold(t *testing.T) {
	var m clock.Manual
	start := m.Now()
	m.Advance(3 * time.Second)
	if got := m.Now().Sub(start); got != 3*time.Second {
		t.Fatalf("after Advance(3s) the clock moved %v", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("Advance(-1) did not panic")
		}
	}()
	m.Advance(-1)
}

func TestDriftScalesTheRate(t *testing.T) {
	var m clock.Manual
	m.Advance(time.Hour)
	fast := clock.Drift(&m, 1.5, 10*time.Second)
	start := m.Now()
	m.Advance(20 * time.Second)
	if got := fast.Now().Sub(start); got != 40*time.Second {
		t.Fatalf("20 s at rate 1.5 and 10 s ahead read %v, want 40s", got)
	}
}

func TestSystemNeverGoesBack(t *testing.T) {
	c := clock.System()
	last := c.Now()
	for range 10_000 {
		now := c.Now()
		if now < last {
			t.Fatalf("the system clock went back from %d to %d", last, now)
		}
		last = now
	}
}

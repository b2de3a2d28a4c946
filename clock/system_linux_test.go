package clock

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// kernel is a machine's clocks.
type kernel struct {
	wall    int64
	mono    Instant
	asleep  Instant
	between func() // each two readings
	swap    bool   // CLOCK_MONOTONIC is read before the wall clock
}

func (k *kernel) read() {
	k.mono++
	k.wall++
	if k.between != nil {
		k.between()
	}
}

func (k *kernel) sleeps(d time.Duration) { k.wall, k.asleep = k.wall+int64(d), k.asleep+Instant(d) }

func (k *kernel) runs(d time.Duration) { k.wall, k.mono = k.wall+int64(d), k.mono+Instant(d) }

func (k *kernel) system() *system {
	return newSystem(
		func() (wall int64, up Instant) {
			if k.swap {
				k.read()
				up = k.mono
			}
			k.read()
			if wall = k.wall; !k.swap {
				k.read()
				up = k.mono
			}
			return wall, up
		},
		func() Instant { k.read(); return k.mono + k.asleep },
	)
}

// off is how far a reading is from the true time.
func (k *kernel) off(s *system) time.Duration { return s.Now().Sub(k.mono + k.asleep) }

func TestSystemCountsTheTimeAsleep(t *testing.T) {
	k := &kernel{wall: year2001 + int64(20*365*24*time.Hour), asleep: Instant(time.Hour)}
	s := k.system()
	for _, step := range []struct {
		name string
		do   func()
	}{
		{"the first reading", func() {}},
		{"time that passes", func() { k.runs(time.Minute) }},
		{"sleep", func() { k.sleeps(3 * time.Hour) }},
		{"the wall clock is set back", func() { k.wall -= int64(2 * time.Hour) }},
		{"the wall clock is set forward", func() { k.wall += int64(time.Second) }},
		{"sleep, and a wall clock that is set back by a little less", func() {
			k.sleeps(time.Minute)
			k.wall -= int64(time.Minute - 30*time.Microsecond)
		}},
		{"a wall clock that nobody has set", func() { k.wall = 5 }},
		{"sleep with it", func() { k.sleeps(time.Hour) }},
		{"it is set", func() { k.wall = year2001 + 5 }},
	} {
		step.do()
		if off := k.off(s); off.Abs() > time.Duration(near) {
			t.Errorf("%s: the clock is %v off", step.name, off)
		}
	}
	// While nothing of the kind happens it is not looked up.
	s.boot = func() Instant { t.Error("looked up"); return 0 }
	for range 100 {
		k.runs(time.Second)
		s.Now()
	}
}

// TestSystemWhateverComesBetweenTwoReadings has the machine sleep, set its wall
// clock and hold the goroutine up between any two of them.
func TestSystemWhateverComesBetweenTwoReadings(t *testing.T) {
	for seed := range uint64(2000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		k := &kernel{wall: year2001 * 2, swap: seed%2 == 1}
		s := k.system()
		last := Instant(0)
		k.between = func() {
			switch rng.IntN(12) {
			case 0:
				k.sleeps(time.Duration(rng.Int64N(int64(time.Hour))))
			case 1:
				k.wall += rng.Int64N(int64(time.Hour)) - int64(30*time.Minute)
			case 2:
				k.runs(time.Duration(rng.IntN(int(time.Second))))
			}
		}
		for range 50 {
			before := k.mono + k.asleep
			now := s.Now()
			if low, high := before-Instant(near), k.mono+k.asleep+Instant(near); now < low || now > high || now < last {
				t.Fatalf("seed %d: read %d after %d; it was between %d and %d", seed, now, last, low, high)
			}
			last = now
		}
	}
}

func TestSystemIsTheTrueTimeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		if off := System().Now().Sub(Machine().Now()).Abs(); off > time.Minute {
			t.Errorf("the clock is %v off", off)
		}
	})
}

func BenchmarkSystem(b *testing.B) {
	for name, c := range map[string]Clock{"system": System(), "machine": Machine(), "go": Go()} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				c.Now()
			}
		})
	}
}

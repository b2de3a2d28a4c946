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
	absurd  bool   // the wall clock shows a year that Go does not like
}

func (k *kernel) tick() {
	k.runs(1)
	if k.between != nil {
		k.between()
	}
}

func (k *kernel) sleeps(d time.Duration) { k.wall, k.asleep = k.wall+int64(d), k.asleep+Instant(d) }

func (k *kernel) runs(d time.Duration) { k.wall, k.mono = k.wall+int64(d), k.mono+Instant(d) }

func (k *kernel) system() *system {
	return newSystem(
		func() (wall int64, up Instant, ok bool) {
			k.tick()
			wall, up = k.wall, k.mono
			k.tick()
			if k.swap {
				wall = k.wall
			} else {
				up = k.mono
			}
			return wall, up, !k.absurd
		},
		func() Instant { k.tick(); return k.now() },
	)
}

func (k *kernel) now() Instant { return k.mono + k.asleep }

// off is how far a reading is from the true time.
func (k *kernel) off(s *system) time.Duration { return s.Now().Sub(k.now()) }

func TestSystemCountsTheTimeAsleep(t *testing.T) {
	k := &kernel{wall: int64(50 * 365 * 24 * time.Hour), asleep: Instant(time.Hour)}
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
		{"an absurd one", func() { k.wall, k.absurd = -1<<62, true }},
		{"sleep with it", func() { k.sleeps(time.Hour) }},
		{"it is set", func() { k.wall, k.absurd = 1<<60, false }},
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

// TestSystemWhateverComesBetweenTwoReadings has the machine sleep, its wall clock
// set, the goroutine held up and another one read the time between any two of
// them. No reading lies before one that was over when it began.
func TestSystemWhateverComesBetweenTwoReadings(t *testing.T) {
	for seed := range uint64(4000) {
		rng := rand.New(rand.NewPCG(seed, 0))
		k := &kernel{wall: int64(50 * 365 * 24 * time.Hour), swap: seed%2 == 1}
		s := k.system()
		last, nested := Instant(0), false
		read := func() {
			began, floor := k.now(), last
			now := s.Now()
			if low, high := began-Instant(near), k.now()+Instant(near); now < low || now > high || now < floor {
				t.Fatalf("seed %d: read %d after %d; it was between %d and %d", seed, now, floor, began, k.now())
			}
			last = max(last, now)
		}
		k.between = func() {
			switch rng.IntN(20) {
			case 0:
				k.sleeps(time.Millisecond + time.Duration(rng.Int64N(int64(time.Hour))))
			case 1:
				k.wall += rng.Int64N(int64(time.Hour)) - int64(30*time.Minute)
			case 2:
				k.runs(time.Duration(rng.IntN(int(time.Second))))
			case 3, 4, 5:
				k.runs(time.Duration(rng.IntN(int(near) - 3)))
			case 6, 7:
				if !nested {
					nested = true
					read()
					nested = false
				}
			}
		}
		for range 50 {
			read()
		}
	}
}

// TestSystemIsTheTrueTimeInABubble sleeps past the year that Go's clock in a
// bubble begins with, and reads it outside as well.
func TestSystemIsTheTrueTimeInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			time.Sleep(20 * 365 * 24 * time.Hour)
			if off := System().Now().Sub(Machine().Now()).Abs(); off > time.Minute {
				t.Errorf("the clock is %v off", off)
			}
		}
	})
	if off := System().Now().Sub(Machine().Now()).Abs(); off > time.Minute {
		t.Errorf("and then it is %v off outside", off)
	}
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

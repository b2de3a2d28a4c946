package quorum_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// all returns every event so far.
func (b *bed) all() []quorum.Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

func TestR76WaiterSaysWhoHoldsIt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		b.rival("k", time.Minute, 0, 1, 2)
		start := time.Now()
		_, err := b.locker().Acquire(t.Context(), "k", quorum.Wait(45*time.Second))
		if !errors.Is(err, quorum.ErrHeld) {
			t.Fatal(err)
		}
		waiting := b.seen(quorum.EventWaiting)
		if len(waiting) != 5 {
			t.Fatalf("%d events in a wait of 45 s, want one after 2 s and one every 10 s: %+v", len(waiting), waiting)
		}
		for i, e := range waiting {
			at := 2*time.Second + time.Duration(i)*10*time.Second
			within(t, "the wait that an event tells", e.Took, at, at+50*time.Millisecond)
			// What was said last is at most one pause old.
			within(t, "what is left to the holder", e.Left, time.Minute-e.Took, time.Minute-e.Took+time.Second+50*time.Millisecond)
			if e.Key != "k" || e.Label != "a rival" || !errors.Is(e.Err, quorum.ErrHeld) || len(e.Votes) != 3 {
				t.Errorf("event %d is %+v, want the key, the rival, ErrHeld and the votes", i, e)
			}
		}
		within(t, "the whole", since(start), 45*time.Second, 45*time.Second+50*time.Millisecond)
	})
	t.Run("nothing of a short wait", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			b.rival("k", 1500*time.Millisecond, 0, 1, 2)
			must(t, b.locker(quorum.Backoff(time.Millisecond, 100*time.Millisecond)), "k")
			if waiting := b.seen(quorum.EventWaiting); len(waiting) != 0 {
				t.Errorf("a wait below 2 s told of itself: %+v", waiting)
			}
		})
	})
}

func TestR76WaiterBehindAnotherSaysThatItIsHeld(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		b.rival("k", time.Minute, 0, 1, 2)
		l := b.locker()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() { _, _ = l.Acquire(t.Context(), "k", quorum.Wait(3*time.Second)) })
		}
		all.Wait()
		waiting := b.seen(quorum.EventWaiting)
		if len(waiting) != 3 {
			t.Fatalf("%d events of three waiters", len(waiting))
		}
		for _, e := range waiting {
			if !errors.Is(e.Err, quorum.ErrHeld) {
				t.Errorf("one of them tells %v, want ErrHeld", e.Err)
			}
		}
	})
}

func TestR76WaiterSaysThatStoresAreAway(t *testing.T) {
	// F143: and goes on until they come back.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		b.spoilAll(storetest.VerbAcquire, storetest.Fail(errDown))
		time.AfterFunc(15*time.Second, func() { healed(b) })
		start := time.Now()
		must(t, b.locker(), "k")
		within(t, "Acquire", since(start), 15*time.Second, 16*time.Second)
		b.settle()
		waiting := b.seen(quorum.EventWaiting)
		if len(waiting) != 2 || overlap(waiting[0].Err) != "ErrNoQuorum" || waiting[0].Label != "" {
			t.Errorf("events of the wait: %+v, want two of an outage", waiting)
		}
		if done := b.seen(quorum.EventAcquired); len(done) != 1 || done[0].Took < 15*time.Second {
			t.Errorf("the event of the success: %+v, want the time of the wait", done)
		}
	})
}

func TestF167EventsOfAMinuteAreFew(t *testing.T) {
	for name, spoil := range map[string]func(b *bed){
		"held":     func(b *bed) { b.rival("k", time.Minute, 0, 1, 2) },
		"refusing": func(b *bed) { b.spoilAll(storetest.VerbAcquire, storetest.Fail(errDown)) },
		"hanging":  func(b *bed) { b.spoilAll(storetest.VerbAcquire, storetest.Hang()) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				l := b.locker()
				spoil(b)
				_, err := l.Acquire(t.Context(), "k", quorum.Wait(59*time.Second))
				if err == nil {
					t.Fatal("it was acquired")
				}
				if all := b.all(); len(all) > 10 {
					t.Errorf("%d events in a minute, want at most 10: %+v", len(all), all)
				}
			})
		})
	}
}

func TestStoreFailuresAreToldOnceInAWhile(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		b.spoil[1].Set(storetest.Always(storetest.Fail(errDown)))
		try := func() {
			lease := must(t, l, "k")
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			b.settle()
		}
		for range 100 { // 50 s
			try()
		}
		failed := b.seen(quorum.EventStoreFailed)
		if len(failed) != 1 || failed[0].Store != "b" || !errors.Is(failed[0].Err, errDown) || failed[0].Key != "" {
			t.Fatalf("events of the store: %+v, want one", failed)
		}
		time.Sleep(10 * time.Second)
		try()
		if failed := b.seen(quorum.EventStoreFailed); len(failed) != 2 {
			t.Errorf("%d events after a minute, want 2", len(failed))
		}
	})
}

func TestF158WarningBeforeTheEndComesOnce(t *testing.T) {
	// R23: the stores drop everything from the start; the local clock warns.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		lease := must(t, b.locker(quorum.TTL(10*time.Second), quorum.Expiring(3*time.Second)), "k")
		start := time.Now()
		b.settle()
		for _, sp := range b.spoil {
			sp.Set(storetest.Always(storetest.Hang()))
		}
		warned := func() []quorum.Event { return b.seen(quorum.EventExpiring) }
		time.Sleep(6500*time.Millisecond - since(start))
		if len(warned()) != 0 {
			t.Error("warned before 6.5 s")
		}
		time.Sleep(7100*time.Millisecond - since(start))
		if w := warned(); len(w) != 1 || w[0].Left != 3*time.Second || w[0].Key != "k" {
			t.Errorf("at 7.1 s: %+v, want one event with 3 s left", w)
		}
		<-lease.Context().Done()
		b.settle()
		if lost := b.seen(quorum.EventLost); len(warned()) != 1 || len(lost) != 1 || !errors.Is(lost[0].Err, quorum.ErrLost) || lost[0].Token != lease.Token() {
			t.Errorf("at the end: %+v and %+v, want one of each", warned(), lost)
		}
	})
	t.Run("again after a renewal that came in time", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			must(t, b.locker(quorum.TTL(10*time.Second), quorum.Expiring(3*time.Second)), "k")
			for range 2 {
				b.spoilAll(storetest.VerbExtend, storetest.Hang())
				time.Sleep(8 * time.Second)
				healed(b)
				time.Sleep(4 * time.Second)
			}
			if n := len(b.seen(quorum.EventExpiring)); n != 2 || len(b.seen(quorum.EventLost)) != 0 {
				t.Errorf("%d warnings of two outages, and %d losses", n, len(b.seen(quorum.EventLost)))
			}
		})
	})
}

// advised is a store with something to say about its server.
type advised struct {
	*memstore.Store
	advice []string
}

func (a advised) Advice() []string { return a.advice }

func TestAdviceIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t}
		policy := "maxmemory-policy allkeys-lru may evict locks; set noeviction"
		b.set = mustCombine(t, quorum.Consensus(),
			&wrapper{advised{memstore.New("a", memstore.WithClock(clock.Go())), []string{policy, "more"}}, "a"},
			memstore.New("b", memstore.WithClock(clock.Go())))
		l := b.locker()
		if len(b.all()) != 0 {
			t.Error("advice before the first answer")
		}
		for range 3 {
			if err := must(t, l, "k").Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		advice := b.seen(quorum.EventAdvice)
		if len(advice) != 2 || advice[0].Store != "a" || advice[0].Err.Error() != policy || advice[0].Key != "" {
			t.Errorf("advice: %+v, want two sentences of store a, once", advice)
		}
	})
}

func TestEventsOfALeaseInOrder(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		lease := must(t, b.locker(quorum.TTL(3*time.Second)), "k")
		time.Sleep(1500 * time.Millisecond)
		b.spoilAll(storetest.VerbExtend, storetest.Fail(errDown))
		time.Sleep(600 * time.Millisecond)
		healed(b)
		time.Sleep(time.Second)
		if err := lease.Release(context.Background()); err != nil {
			t.Fatal(err)
		}
		b.settle()
		var kinds []quorum.EventKind
		for _, e := range b.all() {
			if e.Kind != quorum.EventStoreFailed && (len(kinds) == 0 || kinds[len(kinds)-1] != e.Kind) {
				kinds = append(kinds, e.Kind)
			}
			if e.Kind != quorum.EventStoreFailed && (e.Key != "k" || e.Token != lease.Token()) {
				t.Errorf("event %+v, want key and token %d", e, lease.Token())
			}
		}
		want := []quorum.EventKind{quorum.EventAcquired, quorum.EventRenewed, quorum.EventRenewFailed, quorum.EventRenewed, quorum.EventReleased}
		if len(kinds) != len(want) {
			t.Fatalf("events %v, want %v", kinds, want)
		}
		for i := range want {
			if kinds[i] != want[i] {
				t.Fatalf("events %v, want %v", kinds, want)
			}
		}
	})
}

func TestR77EventsCostNothingWhenOff(t *testing.T) {
	cost := func(options ...quorum.Option) float64 {
		l := locker(t, 3, options...)
		return testing.AllocsPerRun(200, func() {
			if err := must(t, l, "k").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		})
	}
	var events atomic.Int64
	off, on := cost(), cost(quorum.Observe(func(quorum.Event) { events.Add(1) }))
	t.Logf("%.0f allocations without an observer, %.0f with one", off, on)
	if on < off+2 {
		t.Errorf("%.0f allocations without an observer and %.0f with one: it pays for events that nobody gets", off, on)
	}
	if events.Load() == 0 {
		t.Error("the observer saw nothing")
	}
}

func TestR79AnHourOfRenewalsInAMoment(t *testing.T) { anHour(t) }

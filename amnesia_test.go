package quorum_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// inForgetfulBubble is inBubble with stores that may forget what they
// acknowledged.
func inForgetfulBubble(t *testing.T, n int, f func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newBed(t, n, quorum.Consensus(), memstore.Forgetful())) })
}

// down makes stores refuse every call.
func (b *bed) down(stores ...int) {
	for _, i := range stores {
		b.spoil[i].Set(storetest.Always(storetest.Fail(nil)))
	}
}

// up ends that.
func (b *bed) up(stores ...int) {
	for _, i := range stores {
		b.spoil[i].Set()
	}
}

// expect acquires and releases a key whose token must be above last.
func (b *bed) expect(l *quorum.Locker, key string, last int64) int64 {
	b.t.Helper()
	lease := must(b.t, l, key)
	if lease.Token() <= last {
		b.t.Errorf("token %d after %d", lease.Token(), last)
	}
	if err := lease.Release(b.t.Context()); err != nil {
		b.t.Error(err)
	}
	b.settle()
	return lease.Token()
}

func TestR46RestartedNodeIsKeptOut(t *testing.T) {
	// A holds 1 and 2 while 3 is away; 2 restarts empty and 3 comes back: 2 and
	// 3 are a quorum of stores that know nothing of A.
	schedule := func(t *testing.T, b *bed, restart func(second int)) (holder *quorum.Lease, rival error) {
		order := b.ask("k")
		b.down(order[2])
		holder = must(t, b.locker(quorum.NoRenew()), "k")
		b.settle()
		restart(order[1])
		b.up(order[2])
		b.down(order[0]) // A's node is cut off from the rival
		_, rival = b.locker().Acquire(t.Context(), "k", quorum.Wait(5*time.Second))
		return holder, rival
	}
	t.Run("with the guard", func(t *testing.T) {
		inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
			holder, err := schedule(t, b, func(second int) { b.memory[second].Restart(false) })
			if overlap(err) != "ErrNoQuorum DeadlineExceeded" || holder.Err() != nil {
				t.Errorf("the rival got %v while A holds (%v), want ErrNoQuorum", err, holder.Err())
			}
			quarantined := b.seen(quorum.EventQuarantine)
			if len(quarantined) == 0 || quarantined[0].Left <= 0 || quarantined[0].Left > time.Minute {
				t.Errorf("events of quarantine: %+v", quarantined)
			}
		})
	})
	t.Run("with what it had, too", func(t *testing.T) {
		// A server that restarts cannot know what it lost.
		inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
			holder, err := schedule(t, b, func(second int) { b.memory[second].Restart(true) })
			if err == nil || holder.Err() != nil {
				t.Errorf("the rival got in while A holds (%v)", holder.Err())
			}
		})
	})
	t.Run("without the guard the same lets a rival in", func(t *testing.T) {
		inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
			holder, err := schedule(t, b, func(second int) {
				b.spoil[second].Replace(memstore.New(b.memory[second].Name(), memstore.WithClock(clock.Go())))
			})
			if err != nil || holder.Err() != nil {
				t.Errorf("the schedule shows nothing: the rival got %v, A has %v; want two holders", err, holder.Err())
			}
		})
	})
}

func TestR29TokensGrowAfterAMinorityForgot(t *testing.T) {
	// F002: store 1's counter is far ahead when it is lost.
	for _, n := range []int{3, 5} {
		for _, keep := range []bool{false, true} {
			inForgetfulBubble(t, n, func(t *testing.T, b *bed) {
				l := b.locker()
				for range 50 {
					b.bump("k", 0)
				}
				last := b.expect(l, "k", 0)
				for i := range (n - 1) / 2 {
					b.memory[i].Restart(keep)
				}
				last = b.expect(l, "k", last)
				last = b.sweep(l, "k", last)
				refilled := b.seen(quorum.EventRefilled)
				if len(refilled) != (n-1)/2 || refilled[0].Err != nil {
					t.Fatalf("N=%d: stores that came back: %+v, want %d, vouched for by the others", n, refilled, (n-1)/2)
				}
				// Now a quorum with all the stores that forgot decides.
				for i := range (n - 1) / 2 {
					b.down(n - 1 - i)
				}
				b.expect(l, "k", last)
			})
		}
	}
}

// sweep lets a Locker that goes on acquiring find every store that forgot, and
// their time pass.
func (b *bed) sweep(l *quorum.Locker, key string, last int64) int64 {
	for range 5 {
		time.Sleep(31 * time.Second)
		last = b.expect(l, key, last)
	}
	return last
}

// bump raises the counter of a name in one store.
func (b *bed) bump(key string, store int) {
	b.t.Helper()
	b.rival(key, time.Second, store)
	r := b.request(key)
	r.Owner.ID[0] = byte(100 + store)
	if err := b.memory[store].Release(b.t.Context(), r); err != nil {
		b.t.Fatal(err)
	}
}

func TestR29AllStoresForgot(t *testing.T) {
	inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		last := int64(0)
		for range 3 {
			// A store that others vouch for starts up to a step ahead of its
			// clock, so only that much later the clocks alone keep the order.
			time.Sleep(10 * time.Minute)
			last = b.expect(l, "k", last)
			for _, m := range b.memory {
				m.Restart(false)
			}
			start, before := time.Now(), len(b.seen(quorum.EventRefilled))
			last = b.expect(l, "k", last)
			within(t, "the way back", since(start), time.Minute, time.Minute+5*time.Second)
			last = b.sweep(l, "k", last)
			refilled := b.seen(quorum.EventRefilled)[before:]
			if len(refilled) != 3 {
				t.Fatalf("stores that came back: %+v, want 3", refilled)
			}
			alone := 0
			for _, e := range refilled {
				if e.Err != nil && strings.Contains(e.Err.Error(), "clocks") {
					alone++
				}
			}
			if alone == 0 {
				t.Errorf("nobody said that token order rests on the servers' clocks: %+v", refilled)
			}
		}
	})
}

func TestR29LoneStoreForgetsWithinOneStep(t *testing.T) {
	inForgetfulBubble(t, 1, func(t *testing.T, b *bed) {
		l := b.locker(quorum.MaxTTL(20 * time.Second))
		last := int64(0)
		for range 5 {
			last = b.expect(l, "k", last)
			b.memory[0].Restart(false)
		}
		b.expect(l, "k", last)
	})
}

func TestAmnesiaNewSetWaitsUnlessDeclared(t *testing.T) {
	fresh := func(b *bed) {
		for _, m := range b.memory {
			m.Restart(false) // as a server that was never used
		}
	}
	inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
		fresh(b)
		start := time.Now()
		must(t, b.locker(), "k")
		within(t, "the first use", since(start), time.Minute, time.Minute+5*time.Second)
		if n := b.seen(quorum.EventNewSet); len(n) != 1 || n[0].Left <= 0 || n[0].Left > time.Minute {
			t.Errorf("events of a new set: %+v, want one, that says how long it waits", n)
		}
	})
	t.Run("Init ends the wait", func(t *testing.T) {
		inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
			fresh(b)
			l := b.locker()
			if err := l.Init(t.Context()); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			must(t, l, "k")
			within(t, "the first use", since(start), 0, 0)
			if err := l.Init(t.Context()); err != nil { // those that vote are left alone
				t.Errorf("Init again: %v", err)
			}
			if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
				t.Errorf("after Init again: %v, want ErrHeld", err)
			}
		})
	})
	t.Run("Init by name", func(t *testing.T) {
		inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
			fresh(b)
			l := b.locker()
			if err := l.Init(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrNoQuorum) {
				t.Errorf("one of three is declared fresh: %v, want ErrNoQuorum", err)
			}
			err := l.Init(t.Context(), "b", "nobody")
			if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), `"nobody"`) {
				t.Errorf("Init of a name that is none of the stores = %v", err)
			}
			if err := l.Init(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			must(t, l, "k")
		})
	})
	t.Run("Init of a store that is away", func(t *testing.T) {
		inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
			fresh(b)
			b.down(2)
			if err := b.locker().Init(t.Context()); err == nil || !strings.Contains(err.Error(), `"c"`) || !errors.Is(err, storetest.ErrSpoiled) {
				t.Errorf("Init = %v, want the store that is away", err)
			}
			must(t, b.locker(), "k")
		})
	})
}

func TestF067RepairAfterARestart(t *testing.T) {
	// R47: each node restarts empty, one after another, a renewal apart.
	inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
		lease := must(t, b.locker(quorum.TTL(3*time.Second)), "k")
		b.settle()
		for round := range 6 {
			b.memory[round%3].Restart(false)
			time.Sleep(1500 * time.Millisecond)
			if b.held("k") != 3 {
				t.Errorf("after restart %d and a renewal %d stores hold the lock, want 3", round+1, b.held("k"))
			}
		}
		if lease.Err() != nil {
			t.Errorf("the lease says %v", lease.Err())
		}
		if _, err := b.locker().TryAcquire(t.Context(), "k"); err == nil {
			t.Error("a rival got in")
		}
	})
}

// sweeps has the last store that k asks lose everything, and come back although
// no acquisition of k needs it.
func (b *bed) sweeps() (l *quorum.Locker, last int) {
	b.t.Helper()
	l = b.locker()
	b.expect(l, "k", 0)
	last = b.ask("k")[2]
	b.memory[last].Restart(false)
	for range 4 {
		time.Sleep(31 * time.Second)
		b.expect(l, "k", 0)
	}
	if n := b.seen(quorum.EventRefilled); len(n) != 1 || n[0].Store != b.memory[last].Name() || n[0].Err != nil {
		b.t.Errorf("stores that came back: %+v, want the one that nobody needed", n)
	}
	return l, last
}

func TestAmnesiaKeeperSweepsAndStops(t *testing.T) {
	inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
		l, last := b.sweeps()
		b.memory[last].Restart(false)
		time.Sleep(time.Minute)
		b.expect(l, "k", 0) // finds it in quarantine
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		b.settle()
		before := b.calls(storetest.VerbReadStep, storetest.VerbRaise)
		time.Sleep(10 * time.Minute)
		if after := b.calls(storetest.VerbReadStep, storetest.VerbRaise); after != before {
			t.Errorf("%d calls of the keeper after Close", after-before)
		}
	})
}

// files is a store as a file is: it forgets nothing, and others can take its
// record away.
type files struct{ *memstore.Store }

func (s files) Limits() quorum.Limits {
	l := s.Store.Limits()
	l.Forgets, l.Reach = false, quorum.ReachHost
	return l
}

func TestAmnesiaKeeperSweepsWhatOthersCanEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3, quorum.Consensus(), memstore.Forgetful())
		var members []quorum.Store
		for _, m := range b.memory {
			members = append(members, files{m})
		}
		set, err := quorum.Combine(quorum.Consensus(), members...)
		if err != nil {
			t.Fatal(err)
		}
		b.set = set
		b.sweeps()
	})
}

// lingering is a store whose record can be read for longer than a call lasts.
type lingering struct {
	*memstore.Store
	gate  atomic.Pointer[chan struct{}]
	reads atomic.Int64
}

func (s *lingering) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	s.reads.Add(1)
	if gate := s.gate.Load(); gate != nil {
		<-*gate
	}
	return s.Store.ReadStep(ctx, r)
}

// What comes late to a look that is over ends no other, which would then outlive
// Close.
func TestAmnesiaLateReadingEndsNoOtherRefill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3, quorum.Consensus(), memstore.Forgetful())
		s := &lingering{Store: b.memory[0]}
		var err error
		if b.set, err = quorum.Combine(quorum.Consensus(), s, b.memory[1], b.memory[2]); err != nil {
			t.Fatal(err)
		}
		l := b.locker()
		b.expect(l, "k", 0)
		gate := make(chan struct{})
		s.gate.Store(&gate)
		quorum.MeetQuarantine(l, 0)
		time.Sleep(2 * time.Second) // it is over by its limit
		s.gate.Store(nil)
		s.Restart(false)
		quorum.MeetQuarantine(l, 0)
		synctest.Wait()
		close(gate)
		synctest.Wait()
		if n := quorum.RefillsOf(l); n != 1 {
			t.Errorf("%d stores are on their way back, want the one that forgot", n)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		before := s.reads.Load()
		time.Sleep(2 * time.Minute)
		if after := s.reads.Load(); after != before {
			t.Errorf("%d reads of records after Close", after-before)
		}
	})
}

func TestAmnesiaSilentStoreKeepsAnotherOut(t *testing.T) {
	// b and c forgot and a is silent: a could still vouch, so they stay out, and
	// that is said once a minute.
	inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		last := b.expect(l, "k", 0)
		b.memory[1].Restart(false)
		b.down(0)
		_, err := l.Acquire(t.Context(), "k", quorum.Wait(5*time.Minute))
		if !errors.Is(err, quorum.ErrNoQuorum) {
			t.Fatalf("one store votes, one is silent, one forgot: %v", err)
		}
		stuck := 0
		for _, e := range b.seen(quorum.EventQuarantine) {
			if e.Err != nil && strings.Contains(e.Err.Error(), `"b"`) {
				stuck++
			}
		}
		if stuck < 3 || stuck > 6 || len(b.seen(quorum.EventRefilled)) != 0 {
			t.Errorf("%d events in the four minutes after quarantine, and %d stores came back", stuck, len(b.seen(quorum.EventRefilled)))
		}
		b.up(0)
		time.Sleep(5 * time.Second)
		if n := b.seen(quorum.EventRefilled); len(n) != 1 || n[0].Err != nil {
			t.Errorf("stores that came back once a vouched: %+v", n)
		}
		b.expect(l, "k", last)
	})
}

func TestAmnesiaInsideNestedSets(t *testing.T) {
	inNestedBubble(t, func(t *testing.T, b *bed) {
		l := b.locker()
		last := b.expect(l, "k", 0)
		b.memory[0].Restart(false) // one of zone a: a and the zone's other two vouch
		for n := range nodes {
			b.memory[nodes+n].Restart(false) // all of zone b: nobody can
		}
		last = b.expect(l, "k", last) // zones a and c
		last = b.sweep(l, "k", last)
		alone, vouched := map[string]bool{}, map[string]bool{}
		for _, e := range b.seen(quorum.EventRefilled) {
			if e.Err != nil {
				alone[e.Store] = true
			} else {
				vouched[e.Store] = true
			}
		}
		if !vouched["a0"] || len(alone) == 0 || alone["a0"] || len(alone)+len(vouched) != 4 {
			t.Errorf("vouched for: %v, alone: %v; want a0 by its zone and all of zone b, at least one alone", vouched, alone)
		}
		for n := range nodes {
			b.down(2*nodes + n)
		}
		b.expect(l, "k", last) // zones a and b
	}, memstore.Forgetful())
}

func TestF001OverlappingQuorums(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		l := b.locker(quorum.Backoff(time.Millisecond, time.Millisecond))
		for range 50 {
			b.bump("k", 0)
		}
		b.down(3, 4)
		a := b.expect(l, "k", 0)
		b.up(3, 4)
		b.down(0, 1)
		last := b.expect(l, "k", a)
		b.up(0, 1)
		for i := range 200 {
			away := rand.Perm(5)[:2]
			if i%7 == 0 {
				b.bump("k", away[0]) // an attempt that failed
			}
			b.down(away...)
			last = b.expect(l, "k", last)
			if t.Failed() {
				t.Fatalf("without stores %v, in acquisition %d", away, i)
			}
			b.up(away...)
		}
	})
}

package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

const maxTTL = time.Minute

func request(key string, id byte) quorum.Request {
	return quorum.Request{
		Key: key, Owner: quorum.Owner{ID: quorum.OwnerID{id}, Attempt: 1},
		TTL: 10 * time.Second, MaxTTL: maxTTL, Limit: time.Second, Set: 1, Label: fmt.Sprint("owner ", id),
	}
}

func acquire(t testing.TB, s quorum.Store, r quorum.Request) quorum.Grant {
	t.Helper()
	g, err := s.Acquire(context.Background(), r)
	if err != nil {
		t.Fatalf("Acquire of %q = %v", r.Key, err)
	}
	return g
}

func TestR78MemoryStoreKeepsTheContract(t *testing.T) {
	for name, options := range map[string][]memstore.Option{
		"remembers": nil,
		"forgetful": {memstore.Forgetful()},
	} {
		t.Run(name, func(t *testing.T) {
			c := &clock.Manual{}
			storetest.Run(t, storetest.Factory{
				New: func(*testing.T) quorum.Store {
					return memstore.New("a", append(options, memstore.WithClock(c))...)
				},
				Second:  func(_ *testing.T, first quorum.Store) quorum.Store { return first },
				Advance: c.Advance,
				Restart: func(_ *testing.T, s quorum.Store) { s.(*memstore.Store).Restart(false) },
			})
		})
	}
}

func TestR78MemoryStoreInRealTime(t *testing.T) {
	storetest.Run(t, storetest.Factory{
		New:      func(*testing.T) quorum.Store { return memstore.New("a") },
		Parallel: true,
	})
}

// In a bubble the store follows the bubble's time, calendar and all.
func TestR79BubbleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New("a", memstore.WithClock(clock.Go()))
		acquire(t, s, request("k", 1))
		time.Sleep(10*time.Second - time.Microsecond)
		if _, err := s.Acquire(context.Background(), request("k", 2)); !errors.Is(err, quorum.ErrHeld) {
			t.Fatalf("Acquire before the vote's end = %v, want ErrHeld", err)
		}
		time.Sleep(time.Microsecond)
		g := acquire(t, s, request("k", 2))
		if step := g.Token >> 26; step != time.Now().Unix()/300 {
			t.Errorf("the token's step is %d, want that of %v", step, time.Now())
		}
		if g.Previous != quorum.PreviousExpired {
			t.Errorf("previous holder = %v, want expired", g.Previous)
		}
	})
}

func TestR46RestartedStoreIsKeptOut(t *testing.T) {
	for _, keep := range []bool{true, false} {
		t.Run(fmt.Sprint("keep ", keep), func(t *testing.T) {
			c := &clock.Manual{}
			s := memstore.New("a", memstore.WithClock(c), memstore.Forgetful())
			if !s.Limits().Forgets {
				t.Error("Limits().Forgets is false")
			}
			r := request("k", 1)
			acquire(t, s, r)
			s.Restart(keep)
			_, err := s.Acquire(context.Background(), request("other", 2))
			if quorum.OutcomeOf(err) != quorum.OutcomeQuarantined {
				t.Fatalf("Acquire after a restart = %v, want quarantined", err)
			}
			if _, err := s.Extend(context.Background(), r); errors.Is(err, quorum.ErrNotHeld) == keep {
				t.Errorf("Extend of the vote from before = %v", err)
			}
			step, err := s.ReadStep(context.Background(), r)
			if err != nil || step.Over || step.Left != maxTTL {
				t.Errorf("ReadStep = %+v, %v; want %v left", step, err, maxTTL)
			}
			c.Advance(maxTTL)
			if err := s.Raise(context.Background(), r, quorum.Raise{Quarantine: step.Quarantine, Step: step.Step}); err != nil {
				t.Fatalf("Raise = %v", err)
			}
			acquire(t, s, request("other", 2))
		})
	}
}

func TestStoresAreServersOfTheirOwn(t *testing.T) {
	a := acquire(t, memstore.New("a"), request("k", 1))
	b := acquire(t, memstore.New("a"), request("k", 1))
	if a.Server == "" || a.Server == b.Server {
		t.Errorf("two stores are the servers %q and %q", a.Server, b.Server)
	}
}

// heap returns the bytes in use after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestF124NamesUsedOnceAreDropped(t *testing.T) {
	const limit = 10 << 20
	names := 1_000_000
	if testing.Short() {
		names /= 10
	}
	c := &clock.Manual{}
	s := memstore.New("a", memstore.WithClock(c))
	before := heap()
	use := func(key string) {
		r := request(key, 1)
		acquire(t, s, r)
		if err := s.Release(context.Background(), r); err != nil {
			t.Fatalf("Release of %q = %v", key, err)
		}
	}
	for i := range names {
		use(fmt.Sprint("name ", i))
	}
	full := heap() - before
	c.Advance(11 * time.Minute)
	for range names / 4 {
		use("one")
	}
	left := heap() - before
	runtime.KeepAlive(s)
	t.Logf("%d names used once: %d KiB, %d bytes a name; %d KiB after they rested", names, full>>10, full/int64(names), left>>10)
	if left > limit {
		t.Errorf("%d KiB are left of %d names, want at most %d", left>>10, names, limit>>10)
	}
}

// A name that is held for longer than the sweep's delay stays.
func TestSweepKeepsWhatIsHeld(t *testing.T) {
	c := &clock.Manual{}
	s := memstore.New("a", memstore.WithClock(c))
	held := request("held", 1)
	held.TTL = maxTTL
	token := acquire(t, s, held).Token
	for i := range 100 {
		c.Advance(maxTTL / 2)
		acquire(t, s, request(fmt.Sprint(i), 2))
		if g, err := s.Extend(context.Background(), held); err != nil || g.Token != token {
			t.Fatalf("Extend after %d sweeps = token %d, %v; want %d", i, g.Token, err, token)
		}
	}
	if err := s.Release(context.Background(), held); err != nil {
		t.Fatal(err)
	}
	c.Advance(maxTTL)
	if next := acquire(t, s, request("held", 2)).Token; next != token+1 {
		t.Errorf("the next token is %d, want %d: the counter was dropped", next, token+1)
	}
}

func BenchmarkAcquireRelease(b *testing.B) {
	s := memstore.New("a")
	ctx, r := context.Background(), request("k", 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Acquire(ctx, r); err != nil {
			b.Fatal(err)
		}
		if err := s.Release(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRefused(b *testing.B) {
	s := memstore.New("a")
	ctx := context.Background()
	held := request("k", 1)
	held.TTL = maxTTL
	acquire(b, s, held)
	r := request("k", 2)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Acquire(ctx, r); err == nil {
			b.Fatal("granted beside a holder")
		}
	}
}

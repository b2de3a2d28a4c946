package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// What may happen at the same time must not depend on who comes first. These
// run without a bubble, where goroutines really race.

func TestAcquireRacingClose(t *testing.T) {
	for range 300 {
		l, err := quorum.New(memstore.New("a"))
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				lease, err := l.Acquire(t.Context(), fmt.Sprint(i))
				if (lease == nil) == (err == nil) || err != nil && !errors.Is(err, quorum.ErrClosed) {
					t.Errorf("Acquire during Close = %v, %v", lease, err)
				}
			})
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wait.Wait()
	}
}

func TestReleaseRacingClose(t *testing.T) {
	for range 200 {
		l, err := quorum.New(memstore.New("a"))
		if err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		for i := range 16 {
			lease := must(t, l, fmt.Sprint(i))
			wait.Go(func() {
				if err := lease.Release(t.Context()); err != nil && !errors.Is(err, quorum.ErrLost) {
					t.Errorf("Release during Close = %v", err)
				}
			})
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wait.Wait()
	}
}

func TestF008ExtendAfterAnUnseenEndDoesNotHang(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		c := &jumping{start: time.Now()}
		l := b.locker(quorum.WithClock(c), quorum.TTL(2*time.Second))
		lease := must(t, l, "k")
		c.jump(10 * time.Second)
		if err := lease.Extend(t.Context(), 2*time.Second); !errors.Is(err, quorum.ErrLost) {
			t.Errorf("Extend after a pause beyond the TTL = %v, want ErrLost", err)
		}
	})
}

// first is met by the first member alone: it tells members apart by place.
type first struct{}

func (first) String() string                 { return "first" }
func (first) Met(v quorum.Votes, n int) bool { return v.Has(0) }

func TestR45PlaceCountsWhereTheStrategyTellsMembersApart(t *testing.T) {
	a, b := memstore.New("a"), memstore.New("b")
	one, err := quorum.Combine(first{}, a, b)
	if err != nil {
		t.Fatal(err)
	}
	other, err := quorum.Combine(first{}, b, a)
	if err != nil {
		t.Fatal(err)
	}
	if quorum.FingerprintOf(one, time.Minute) == quorum.FingerprintOf(other, time.Minute) {
		t.Error("two sets that are decided by different stores have one fingerprint")
	}
}

func TestCompositesAreAskedInOneOrderWhateverListTheyWereGiven(t *testing.T) {
	zone := func(names ...string) quorum.Store {
		var members []quorum.Store
		for _, n := range names {
			members = append(members, memstore.New(n))
		}
		c, err := quorum.Combine(quorum.Consensus(), members...)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, err := quorum.Combine(quorum.Consensus(), zone("a", "b", "c"), zone("d", "e", "f"), zone("g", "h", "i"))
	if err != nil {
		t.Fatal(err)
	}
	other, err := quorum.Combine(quorum.Consensus(), zone("c", "a", "b"), zone("f", "e", "d"), zone("h", "g", "i"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		key := fmt.Sprint("key", i)
		if x, y := quorum.AskOrderOf(one, key), quorum.AskOrderOf(other, key); fmt.Sprint(x) != fmt.Sprint(y) {
			t.Errorf("%s is asked in the order %v and %v", key, x, y)
		}
	}
}

func TestCloseWaitsForAReleaseThatBeganAtTheLoss(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bed) {
		slow := quorum.Observe(func(e quorum.Event) {
			if e.Kind == quorum.EventLost {
				time.Sleep(time.Millisecond)
			}
		})
		l := b.locker(slow, quorum.MaxHold(time.Second))
		lease := must(t, l, "k")
		b.spoil[0].Set(storetest.On(storetest.Nth(storetest.VerbRelease, 1), storetest.Fail(nil)))
		<-lease.Context().Done()
		_ = lease.Release(t.Context())
		time.Sleep(2 * time.Millisecond)
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
		b.checkEmpty("k")
	})
}

func TestQuestionsAreBoundedAndSurviveAPanic(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		lease := must(t, l, "k")
		b.settle()
		b.spoil[0].Set(storetest.Always(storetest.Freeze()))
		b.spoil[1].Set(storetest.Always(storetest.Panic("boom")))
		start := time.Now()
		status, err := l.Inspect(t.Context(), "k")
		within(t, "Inspect", since(start), 0, time.Second)
		if err != nil || status.Stores[0].Err == nil || status.Stores[1].Err == nil || len(status.Stores[2].State.Holders) != 1 {
			t.Errorf("one store frozen, one panicking: %+v, %v", status, err)
		}
		if err := l.Check(t.Context()); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("Check = %v, want ErrNoQuorum", err)
		}
		if err := l.Init(t.Context()); err == nil {
			t.Error("Init of a frozen and a panicking store succeeded")
		}
		b.spoil[0].Thaw()
		b.spoil[0].Set()
		b.spoil[1].Set()
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestR42TwinIsForgivenOnceItIsNone(t *testing.T) {
	a, b := &claiming{Store: memstore.New("x"), name: "a"}, &claiming{Store: memstore.New("y"), name: "b"}
	a.server, b.server = "one", "one"
	set, err := quorum.Combine(quorum.Unanimous(), a, b)
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.Background()) }()
	if _, err := l.TryAcquire(t.Context(), "k"); err == nil {
		t.Fatal("one server under two names had two votes")
	}
	a.server = "another"
	for range 3 { // the first look at a tells; whoever is asked first
		lease, err := l.TryAcquire(t.Context(), "k")
		if err == nil {
			_ = lease.Release(t.Context())
			return
		}
	}
	t.Error("a member that moved to a server of its own still makes the other a twin")
}

// claiming is a store that claims a name and a server.
type claiming struct {
	quorum.Store
	name, server string
}

func (n *claiming) Name() string { return n.name }

func (n *claiming) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	g, err := n.Store.Acquire(ctx, r)
	g.Server = n.server
	return g, err
}

// For the race detector: a context is made when it is asked for first.
func TestContextBesideMarshal(t *testing.T) {
	l, err := quorum.New(files{memstore.New("a", memstore.Forgetful())})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(t.Context()) }()
	for i := range 50 {
		lease := must(t, l, fmt.Sprint("k", i))
		var asks sync.WaitGroup
		asks.Go(func() { <-lease.Context().Done() })
		if _, err := lease.Marshal(); err != nil {
			t.Fatal(err)
		}
		asks.Wait()
	}
}

func TestSettingsAtTheirExtremes(t *testing.T) {
	for name, option := range map[string]quorum.Option{
		"a drift that overflows": quorum.Drift(0.01, 1<<63-1),
		"renewing in a loop":     quorum.RenewEvery(1),
	} {
		if _, err := quorum.New(memstore.New("a"), option); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
	if _, err := quorum.New((*quorum.CombinedStore)(nil)); !errors.Is(err, quorum.ErrInvalidOption) {
		t.Errorf("a nil set: %v", err)
	}
	if text := (&quorum.RefusedError{Outcome: 77}).Error(); text != "outcome 77" {
		t.Errorf("an outcome that does not exist reads %q", text)
	}
	if o := quorum.OutcomeOf(&quorum.RefusedError{Outcome: 77}); o != quorum.OutcomeUnknown {
		t.Errorf("an outcome that does not exist counts as %v", o)
	}
	l, err := quorum.New(memstore.New("a"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if err := l.Close(ctx); err != nil {
			t.Fatalf("closing an idle Locker with an ended context: %v", err)
		}
	}
}

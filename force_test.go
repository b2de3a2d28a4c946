package quorum_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func TestR09ForceTakesTheNameAndSaysWhoDid(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		theirs, mine := b.locker(), b.locker(quorum.Label("operator"))
		old := b.take(theirs, "k")
		lease, err := mine.Force(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if lease.Token() <= old.Token() {
			t.Errorf("token %d is not above %d", lease.Token(), old.Token())
		}
		time.Sleep(6 * time.Second) // one renewal is every 5 s
		synctest.Wait()
		lost := (*quorum.LostError)(nil)
		if cause := context.Cause(old.Context()); !errors.As(cause, &lost) || lost.Reason != quorum.LostForced || !strings.Contains(lost.By, "operator") {
			t.Errorf("the old lease ended with %v, want forced by the operator", cause)
		}
		told := b.seen(quorum.EventLost)
		if len(told) != 1 || !strings.Contains(told[0].Label, "operator") {
			t.Errorf("events of the loss: %v, want one that names the operator", told)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i := range 3 {
			h := b.holders(i, "k")
			if len(h) != 1 || h[0].Token != lease.Token() {
				t.Errorf("store %d is held by %v, want only the new lease", i, h)
			}
		}
		if err := lease.Err(); err != nil {
			t.Errorf("the new lease: %v", err)
		}
	})
}

func TestR09ForceRemovesReaders(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		one, two := b.take(locks, "k", quorum.Shared()), b.take(locks, "k", quorum.Shared())
		if _, err := locks.Force(t.Context(), "k", quorum.Shared()); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("forced to share: %v, want ErrInvalidOption", err)
		}
		if _, err := locks.Force(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		for _, r := range []*quorum.Lease{one, two} {
			if err := r.Extend(t.Context(), 30*time.Second); !errors.Is(err, quorum.ErrLost) {
				t.Errorf("a reader extends after force: %v, want ErrLost", err)
			}
		}
	})
}

func TestR31PreviousHolder(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker(quorum.TTL(10 * time.Second))
		first := b.take(locks, "k")
		if p := first.Previous(); p != quorum.PreviousUnknown {
			t.Errorf("before the first holder: %s, want unknown", p)
		}
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		second := b.take(locks, "k", quorum.NoRenew())
		if p := second.Previous(); p != quorum.PreviousReleased {
			t.Errorf("after a release: %s, want released", p)
		}
		time.Sleep(11 * time.Second) // as after a crash
		third := b.take(locks, "k")
		if p := third.Previous(); p != quorum.PreviousExpired {
			t.Errorf("after a crash: %s, want expired", p)
		}
	})
}

func TestR19MinHoldKeepsAReleaseBack(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		lease := b.take(locks, "k", quorum.MinHold(10*time.Second))
		start := time.Now()
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if time.Since(start) != 0 || !errors.Is(lease.Err(), quorum.ErrReleased) {
			t.Errorf("Release took %v and left the lease %v, want at once and ErrReleased", time.Since(start), lease.Err())
		}
		time.Sleep(9900 * time.Millisecond)
		if n := b.held("k"); n != 3 {
			t.Errorf("%d stores hold the name just before MinHold is over, want 3", n)
		}
		time.Sleep(200 * time.Millisecond)
		synctest.Wait()
		if n := b.held("k"); n != 0 {
			t.Errorf("%d stores hold the name after MinHold", n)
		}
		if n := len(b.seen(quorum.EventReleased)); n != 1 {
			t.Errorf("%d releases told, want 1", n)
		}
	})
}

func TestR19MinHoldStandsAcrossClose(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		b.take(locks, "k", quorum.MinHold(10*time.Second))
		start := time.Now()
		if err := locks.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("Close took %v, want 10s", d)
		}
		if n := b.held("k"); n != 0 {
			t.Errorf("%d stores hold the name after Close", n)
		}
	})
}

// Three schedulers start one tick, 5 s apart by their clocks, and the job takes
// no time.
func TestR19TickRunsOnce(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		for tick := range 3 {
			ran := 0
			for scheduler := range 3 {
				if scheduler > 0 {
					time.Sleep(2500 * time.Millisecond)
				}
				locks := b.locker(quorum.MinHold(10 * time.Second))
				lease, err := locks.TryAcquire(t.Context(), "tick")
				if errors.Is(err, quorum.ErrHeld) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				ran++
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if ran != 1 {
				t.Errorf("tick %d ran %d times, want once", tick, ran)
			}
			time.Sleep(time.Minute)
		}
	})
}

// clusterWide is a bed whose stores say that they reach beyond this process.
func clusterWide(t *testing.T, b *bed) {
	for _, s := range b.spoil {
		s.Pretend(func(l *quorum.Limits) { l.Reach = quorum.ReachCluster })
	}
	members := make([]quorum.Store, len(b.spoil))
	for i, s := range b.spoil {
		members[i] = s
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		t.Fatal(err)
	}
	b.set = set
}

func TestR10HandOver(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		clusterWide(t, b)
		here, there := b.locker(), b.locker()
		for _, options := range [][]quorum.Option{nil, {quorum.Shared()}} {
			old := b.take(here, "k", options...)
			data, err := old.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if !errors.Is(old.Err(), quorum.ErrReleased) || context.Cause(old.Context()) != quorum.ErrReleased {
				t.Errorf("the old lease is %v, want released", old.Err())
			}
			if err := old.Release(t.Context()); err != nil {
				t.Errorf("Release after Marshal: %v", err)
			}
			if _, err := old.Marshal(); !errors.Is(err, quorum.ErrReleased) {
				t.Errorf("marshalled twice: %v, want ErrReleased", err)
			}
			time.Sleep(5 * time.Second)
			lease, err := there.Resume(t.Context(), data)
			if err != nil {
				t.Fatal(err)
			}
			if lease.Token() != old.Token() || lease.Mode() != old.Mode() || lease.Key() != "k" {
				t.Errorf("resumed %q as %s with token %d, want as %s with %d", lease.Key(), lease.Mode(), lease.Token(), old.Mode(), old.Token())
			}
			time.Sleep(time.Minute) // it is renewed
			if err := lease.Release(t.Context()); err != nil {
				t.Error(err)
			}
			b.checkEmpty("k")
			if _, err := there.Resume(t.Context(), data); !errors.Is(err, quorum.ErrNotHeld) {
				t.Errorf("resumed after the release: %v, want ErrNotHeld", err)
			}
		}
	})
}

func TestR10ResumeNeedsAQuorum(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		clusterWide(t, b)
		locks := b.locker()
		data, err := b.take(locks, "k").Marshal()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range b.spoil[:2] {
			s.Set(storetest.Always(storetest.Fail(nil)))
		}
		if _, err := locks.Resume(t.Context(), data); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("resumed with one store: %v, want ErrNoQuorum", err)
		}
		for _, s := range b.spoil[:2] {
			s.Set()
		}
		if _, err := locks.Resume(t.Context(), data); err != nil {
			t.Errorf("resumed when they are back: %v", err)
		}
		for _, bad := range []string{"", "{}", `{"Version":2}`, strings.Replace(string(data), `"Owner":"`, `"Owner":"x`, 1)} {
			if _, err := locks.Resume(t.Context(), []byte(bad)); !errors.Is(err, quorum.ErrInvalidOption) {
				t.Errorf("resumed %q: %v, want ErrInvalidOption", bad, err)
			}
		}
		other := b.locker(quorum.MaxTTL(2 * time.Minute))
		if _, err := other.Resume(t.Context(), data); !errors.Is(err, quorum.ErrMismatch) {
			t.Errorf("resumed by another set: %v, want ErrMismatch", err)
		}
	})
}

func TestR10StoresOfThisProcessCannotHandOver(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		lease := b.take(locks, "k")
		if _, err := lease.Marshal(); !errors.Is(err, quorum.ErrUnsupported) || lease.Err() != nil {
			t.Errorf("Marshal: %v, and the lease is %v; want ErrUnsupported and held", err, lease.Err())
		}
	})
}

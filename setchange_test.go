package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// shift is stores that change from one set to another, and the Lockers that
// clients of either set and those in between have.
type shift struct {
	b                 *bed
	old, between, new *quorum.Locker
}

// shifts puts a bed's stores into an old set, by their number, and a new one.
func newShift(t *testing.T, b *bed, old, new []int, options ...quorum.Option) *shift {
	t.Helper()
	pick := func(of []int) *quorum.CombinedStore {
		var members []quorum.Store
		for _, i := range of {
			members = append(members, b.spoil[i])
		}
		return mustCombine(t, quorum.Consensus(), members...)
	}
	s := &shift{b: b, old: b.lockerOf(pick(old)), new: b.lockerOf(pick(new), options...)}
	between, err := quorum.Between(s.old, s.new)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = between.Close(context.Background()) })
	s.between = between
	return s
}

func (s *shift) to(t *testing.T, stage quorum.ChangeStage) {
	t.Helper()
	report, err := quorum.Change(t.Context(), s.old, s.new, stage)
	if err != nil || report.Stage != stage {
		t.Fatalf("Change to %v = %+v, %v", stage, report, err)
	}
}

func TestR48ClientsMoveWithoutNoticing(t *testing.T) {
	for name, sets := range map[string][2][]int{
		"one replaced": {{0, 1, 2}, {1, 2, 3}},
		"all replaced": {{0, 1, 2}, {3, 4, 5}},
		"three more":   {{0, 1}, {0, 1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 6, func(t *testing.T, b *bed) {
				s := newShift(t, b, sets[0], sets[1])
				begin := must(t, s.old, "k")
				s.to(t, quorum.ChangeJoining)
				time.Sleep(time.Minute)
				if err := begin.Err(); err != nil {
					t.Fatalf("a lease of the old set did not outlive the first step: %v", err)
				}
				if _, err := s.between.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
					t.Errorf("a client in between got %v beside a holder of the old set, want ErrHeld", err)
				}
				if err := begin.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				middle := must(t, s.between, "k")
				if middle.Token() <= begin.Token() {
					t.Errorf("token %d after %d", middle.Token(), begin.Token())
				}
				if _, err := s.old.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
					t.Errorf("a client of the old set got %v beside a holder in between, want ErrHeld", err)
				}
				start := time.Now()
				s.to(t, quorum.ChangeOpened)
				within(t, "the wait for old leases", since(start), time.Minute, time.Minute+10*time.Second)
				if err := middle.Err(); err != nil {
					t.Fatalf("a lease in between did not outlive the change: %v", err)
				}
				if _, err := s.old.TryAcquire(t.Context(), "other"); !errors.Is(err, quorum.ErrMismatch) {
					t.Errorf("a client of the old set got %v after it, want ErrMismatch", err)
				}
				if _, err := s.new.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
					t.Errorf("a client of the new set got %v beside a holder in between, want ErrHeld", err)
				}
				if err := middle.Release(t.Context()); err != nil {
					t.Fatal(err)
				}
				last := must(t, s.new, "k")
				if last.Token() <= middle.Token() {
					t.Errorf("token %d after %d", last.Token(), middle.Token())
				}
				s.to(t, quorum.ChangeDone)
				time.Sleep(time.Minute)
				if err := last.Release(t.Context()); err != nil {
					t.Errorf("a lease of the new set did not outlive the end: %v", err)
				}
				if _, err := s.between.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrMismatch) {
					t.Errorf("a client in between got %v at the end, want ErrMismatch", err)
				}
				s.to(t, quorum.ChangeDone) // once more does nothing
			})
		})
	}
}

// A name that was last locked under the old set, at a high token, does not
// start again below under stores that never knew it.
func TestR48TokensGoOnInNewStores(t *testing.T) {
	inBubble(t, 6, func(t *testing.T, b *bed) {
		s := newShift(t, b, []int{0, 1, 2}, []int{3, 4, 5})
		var last int64
		for range 50 {
			lease := must(t, s.old, "k")
			last = lease.Token()
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		s.to(t, quorum.ChangeDone)
		if got := must(t, s.new, "k").Token(); got <= last {
			t.Errorf("token %d after %d", got, last)
		}
	})
}

// The operator is killed at each call in turn, clients of every set go on all
// the while, reload where they are told a mismatch, and see at no instant
// another holder; the next operator goes on.
func TestR48OperatorKilledAtEveryCallUnderLoad(t *testing.T) {
	for name, sets := range map[string][2][]int{"one replaced": {{0, 1, 2}, {1, 2, 3}}, "all replaced": {{0, 1, 2}, {3, 4, 5}}} {
		t.Run(name, func(t *testing.T) {
			for kill := int32(1); ; kill += 7 {
				killed := false
				inBubble(t, 6, func(t *testing.T, b *bed) { killed = changeUnderLoad(t, b, sets, kill) })
				if !killed {
					if kill < 20 {
						t.Errorf("a change makes %d calls, which shows little", kill)
					}
					return
				}
			}
		})
	}
}

func changeUnderLoad(t *testing.T, b *bed, sets [2][]int, kill int32) (killed bool) {
	s := newShift(t, b, sets[0], sets[1])
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls atomic.Int32
	operators := storetest.Verbs(storetest.VerbServes, storetest.VerbServe, storetest.VerbReadStep, storetest.VerbRaise)
	for _, sp := range b.spoil {
		sp.Set(storetest.On(operators, storetest.Latency(20*time.Millisecond), storetest.Do(func() {
			if calls.Add(1) == kill {
				cancel()
			}
		})), storetest.Always(storetest.Latency(3*time.Millisecond)))
	}
	load := &load{t: t, lockers: []*quorum.Locker{s.old, s.between, s.new}}
	var clients sync.WaitGroup
	stop, end := context.WithCancel(t.Context())
	for range 3 {
		clients.Go(func() { load.run(stop) })
	}
	time.Sleep(time.Second)
	if _, err := quorum.Change(ctx, s.old, s.new, quorum.ChangeDone); err != nil {
		killed = true
		time.Sleep(5 * time.Second)
		s.to(t, quorum.ChangeDone)
	}
	time.Sleep(5 * time.Second)
	load.mu.Lock()
	before := load.by[2]
	load.mu.Unlock()
	time.Sleep(10 * time.Second)
	end()
	clients.Wait()
	if load.by[2] <= before || load.by[0] == 0 {
		t.Errorf("killed at call %d: %v acquisitions of the old set, in between and of the new, none of the last 10 s: something is stuck", kill, load.by)
	}
	return killed
}

// load is clients that take one lock by whichever set works, and look whether
// they are alone and their tokens grow.
type load struct {
	t       *testing.T
	lockers []*quorum.Locker
	mu      sync.Mutex
	holder  *quorum.Lease
	last    int64
	by      [3]int
}

func (l *load) run(ctx context.Context) {
	for at := 0; ctx.Err() == nil; {
		lease, err := l.lockers[at].Acquire(ctx, "k", quorum.Wait(2*time.Second))
		if errors.Is(err, quorum.ErrMismatch) {
			at = (at + 1) % len(l.lockers) // it loads its settings again
			_ = pause(ctx, 50*time.Millisecond)
		}
		if err != nil {
			continue
		}
		l.mu.Lock()
		if l.holder != nil && l.holder.Remaining() > 0 {
			l.t.Errorf("two holders, with tokens %d and %d", l.holder.Token(), lease.Token())
		}
		if lease.Token() <= l.last {
			l.t.Errorf("token %d after %d", lease.Token(), l.last)
		}
		l.holder, l.last = lease, lease.Token()
		l.by[at]++
		l.mu.Unlock()
		_ = pause(ctx, 100*time.Millisecond)
		l.mu.Lock()
		if l.holder == lease {
			l.holder = nil
		}
		l.mu.Unlock()
		_ = lease.Release(ctx)
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestR48AnotherMaxTTL(t *testing.T) {
	for name, maxTTL := range map[string]time.Duration{"longer": 3 * time.Minute, "shorter": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				s := newShift(t, b, []int{0, 1, 2}, []int{0, 1, 2}, quorum.MaxTTL(maxTTL))
				_, err := quorum.Between(s.old, s.new, quorum.TTL(max(maxTTL, time.Minute)))
				if !errors.Is(err, quorum.ErrInvalidTTL) || !strings.Contains(err.Error(), min(maxTTL, time.Minute).String()) {
					t.Errorf("Between with the longer TTL = %v, want the shorter MaxTTL as its bound", err)
				}
				held := must(t, s.old, "k", quorum.TTL(time.Minute), quorum.NoRenew())
				start := time.Now()
				s.to(t, quorum.ChangeOpened)
				within(t, "the wait for old leases", since(start), max(maxTTL, time.Minute), max(maxTTL, time.Minute)+10*time.Second)
				if held.Remaining() > 0 {
					t.Error("a lease of the old set is still believed")
				}
				s.to(t, quorum.ChangeDone)
				must(t, s.new, "k", quorum.TTL(maxTTL))
			})
		})
	}
}

func TestR48StoreThatIsAwayIsNamed(t *testing.T) {
	inBubble(t, 4, func(t *testing.T, b *bed) {
		s := newShift(t, b, []int{0, 1, 2}, []int{1, 2, 3})
		b.spoil[0].Set(storetest.Always(storetest.Fail(errors.New("no route")))) // the one that is replaced
		s.to(t, quorum.ChangeOpened)
		b.spoil[3].Set(storetest.Always(storetest.Fail(errors.New("no route"))))
		report, err := quorum.Change(t.Context(), s.old, s.new, quorum.ChangeDone)
		if err == nil || !strings.Contains(err.Error(), `"d" did not answer`) || report.Stage != quorum.ChangeDone {
			t.Errorf("Change = %+v, %v; want done, and store d named", report, err)
		}
		if d := report.Stores[3]; d.Name != "d" || d.Old || !d.New || d.Err == nil || d.Stage != quorum.ChangeNone {
			t.Errorf("store d's part is %+v, want an error", d)
		}
		b.spoil[3].Set()
		s.to(t, quorum.ChangeDone)
		must(t, s.new, "k")
	})
}

// The old stores may be gone before the last step.
func TestR48OldStoresAreSwitchedOffEarly(t *testing.T) {
	inBubble(t, 6, func(t *testing.T, b *bed) {
		s := newShift(t, b, []int{0, 1, 2}, []int{3, 4, 5})
		s.to(t, quorum.ChangeOpened)
		for _, sp := range b.spoil[:3] {
			sp.Set(storetest.Always(storetest.Fail(errors.New("no route"))))
		}
		start := time.Now()
		s.to(t, quorum.ChangeDone)
		within(t, "the last step", since(start), 0, 10*time.Second)
		must(t, s.new, "k")
	})
}

func TestR48ChangeThatCannotGoOnSaysWhy(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		s := newShift(t, b, []int{0, 1, 2}, []int{1, 2, 3})
		for _, sp := range b.spoil[:2] {
			sp.Set(storetest.Always(storetest.Fail(errors.New("no route"))))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := quorum.Change(ctx, s.old, s.new, quorum.ChangeDone)
		if !errors.Is(err, quorum.ErrNoQuorum) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no route") {
			t.Errorf("Change without a quorum of the old set = %v", err)
		}
		for _, sp := range b.spoil {
			sp.Set()
		}
		third := b.lockerOf(mustCombine(t, quorum.Consensus(), b.spoil[4]))
		must(t, third, "k")
		taken := newShift(t, b, []int{0, 1, 2}, []int{1, 2, 4})
		report, err := quorum.Change(t.Context(), taken.old, taken.new, quorum.ChangeDone)
		if !errors.Is(err, quorum.ErrMismatch) || !strings.Contains(err.Error(), `"e"`) || report.Stage > quorum.ChangeOld {
			t.Errorf("Change with a store of a third set = %+v, %v; want ErrMismatch, nothing changed and store e named", report, err)
		}
		plain := b.lockerOf(mustCombine(t, quorum.Consensus(), &storeWithout{b.spoil[0]}))
		for name, call := range map[string]func() (*quorum.ChangeReport, error){
			"one set": func() (*quorum.ChangeReport, error) {
				return quorum.Change(t.Context(), s.old, s.old, quorum.ChangeDone)
			},
			"no stage": func() (*quorum.ChangeReport, error) {
				return quorum.Change(t.Context(), s.old, s.new, quorum.ChangeOld)
			},
			"no Locker": func() (*quorum.ChangeReport, error) { return quorum.Change(t.Context(), nil, s.new, quorum.ChangeDone) },
			"no such way": func() (*quorum.ChangeReport, error) {
				return quorum.Change(t.Context(), plain, s.new, quorum.ChangeDone)
			},
			"ended": func() (*quorum.ChangeReport, error) {
				return quorum.Change(ctx, s.old, s.new, quorum.ChangeDone)
			},
		} {
			if name == "ended" {
				cancel()
			}
			report, err := call()
			if report != nil || err == nil {
				t.Errorf("%s: %+v, %v", name, report, err)
			}
			want := map[string]error{"no such way": quorum.ErrUnsupported, "ended": context.DeadlineExceeded}[name]
			if want == nil {
				want = quorum.ErrInvalidOption
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", name, err, want)
			}
		}
	})
}

func TestR48ProgressIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 4, quorum.Consensus(), memstore.Forgetful(), memstore.WithClock(clock.Go()))
		s := newShift(t, b, []int{0, 1, 2}, []int{1, 2, 3})
		s.to(t, quorum.ChangeDone)
		var got []string
		for _, e := range b.seen(quorum.EventChange) {
			got = append(got, fmt.Sprint(e.Stage, e.Left > 0))
		}
		want := "joining false, joined true, opened false, done false"
		if text := strings.Join(got, ", "); text != want {
			t.Errorf("told %s, want %s", text, want)
		}
	})
}

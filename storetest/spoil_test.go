package storetest_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// ask is a request on the one name of these tests.
func ask(o quorum.Owner) quorum.Request {
	return quorum.Request{Key: "k", Owner: o, TTL: time.Minute, Limit: time.Second, MaxTTL: time.Minute, Set: 1}
}

func someone(id byte) quorum.Owner {
	return quorum.Owner{ID: quorum.OwnerID{id}, Attempt: 1}
}

// within returns a context that ends after d of the bubble's time.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// bubble runs f on a spoiled MapStore, and its goroutines must be gone after.
func bubble(t *testing.T, f func(t *testing.T, s *storetest.Spoiled, under *MapStore)) {
	synctest.Test(t, func(t *testing.T) {
		under := &MapStore{Now: time.Now}
		s := storetest.Spoil(under)
		f(t, s, under)
		s.Close()
		synctest.Wait()
	})
}

// taken reports whether the store has a vote, without the wrapper's help.
func taken(t *testing.T, under quorum.Store) bool {
	t.Helper()
	probe := someone(99)
	if _, err := under.Acquire(t.Context(), ask(probe)); err != nil {
		return true
	}
	if err := under.Release(t.Context(), ask(probe)); err != nil {
		t.Fatal(err)
	}
	return false
}

func TestR79FaultsOfOneCall(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name   string
		faults []storetest.Fault
		limit  time.Duration // of the caller's context
		want   error
		took   time.Duration
		taken  bool
		sent   int
	}{
		{"none", nil, time.Hour, nil, 0, true, 1},
		{"latency", []storetest.Fault{storetest.Latency(time.Second)}, time.Hour, nil, time.Second, true, 1},
		{"latency beyond the context", []storetest.Fault{storetest.Latency(time.Second)}, time.Millisecond, context.DeadlineExceeded, time.Millisecond, false, 0},
		{"late reply", []storetest.Fault{storetest.LateReply(time.Second)}, time.Hour, nil, time.Second, true, 1},
		{"late reply beyond the context", []storetest.Fault{storetest.LateReply(time.Second)}, time.Millisecond, context.DeadlineExceeded, time.Millisecond, true, 1},
		{"error", []storetest.Fault{storetest.Fail(boom)}, time.Hour, boom, 0, false, 0},
		{"error without a name", []storetest.Fault{storetest.Fail(nil)}, time.Hour, storetest.ErrSpoiled, 0, false, 0},
		{"dropped reply", []storetest.Fault{storetest.DropReply(boom)}, time.Hour, boom, 0, true, 1},
		{"hang", []storetest.Fault{storetest.Hang()}, time.Second, context.DeadlineExceeded, time.Second, false, 0},
		{"doubled", []storetest.Fault{storetest.Double(0)}, time.Hour, nil, 0, true, 2},
		{"an error that comes late", []storetest.Fault{storetest.LateReply(time.Second), storetest.Fail(boom)}, time.Hour, boom, time.Second, false, 0},
		{"latency, then a dropped reply", []storetest.Fault{storetest.Latency(time.Second), storetest.DropReply(boom)}, time.Hour, boom, time.Second, true, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *storetest.Spoiled, under *MapStore) {
				s.Set(storetest.Always(tc.faults...))
				_, err := s.Acquire(within(t, tc.limit), ask(someone(1)))
				if !errors.Is(err, tc.want) {
					t.Errorf("Acquire = %v, want %v", err, tc.want)
				}
				c := s.Log(nil)[0]
				if c.Took != tc.took || c.Sent != tc.sent || !c.Done || c.Outcome != quorum.OutcomeOf(err) {
					t.Errorf("logged %v (%v, sent %d), want %v and %d", c, c.Took, c.Sent, tc.took, tc.sent)
				}
				if got := taken(t, under); got != tc.taken {
					t.Errorf("the store has a vote: %v, want %v", got, tc.taken)
				}
			})
		})
	}
}

func TestR79LateApplyComesAfterTheCall(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, under *MapStore) {
		s.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.LateApply(200*time.Millisecond, nil)))
		start := time.Now()
		if _, err := s.Acquire(within(t, 50*time.Millisecond), ask(someone(1))); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Acquire = %v, want the context's error", err)
		}
		if took := time.Since(start); took != 50*time.Millisecond {
			t.Errorf("the call took %v, want 50ms", took)
		}
		if err := s.Release(t.Context(), ask(someone(1))); !errors.Is(err, quorum.ErrNotHeld) {
			t.Errorf("Release before the late apply = %v, want ErrNotHeld", err)
		}
		s.Wait()
		if took := time.Since(start); took != 250*time.Millisecond {
			t.Errorf("applied after %v, want 250ms", took)
		}
		if !taken(t, under) {
			t.Error("the late request was not applied")
		}
	})
}

func TestR79CloseGivesUpWhatIsLate(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, under *MapStore) {
		s.Set(storetest.Always(storetest.LateApply(time.Hour, storetest.ErrSpoiled)))
		start := time.Now()
		if _, err := s.Acquire(t.Context(), ask(someone(1))); err != storetest.ErrSpoiled {
			t.Fatalf("Acquire = %v, want ErrSpoiled", err)
		}
		s.Close()
		if waited := time.Since(start); waited != 0 {
			t.Errorf("Close waited %v for a request an hour away", waited)
		}
		if taken(t, under) {
			t.Error("a request was applied although the wrapper was closed")
		}
	})
}

func TestR79CloseThawsAndEndsHangs(t *testing.T) {
	bubble(t, func(t *testing.T, _ *storetest.Spoiled, _ *MapStore) {
		for _, tc := range []struct {
			fault storetest.Fault
			want  error
		}{{storetest.Hang(), storetest.ErrSpoiled}, {storetest.Freeze(), nil}} {
			s := storetest.Spoil(&MapStore{Now: time.Now}, storetest.Always(tc.fault))
			done := make(chan error, 1)
			go func() {
				_, err := s.Acquire(t.Context(), ask(someone(1)))
				done <- err
			}()
			synctest.Wait()
			s.Close()
			if err := <-done; err != tc.want {
				t.Errorf("the call answered %v after Close, want %v", err, tc.want)
			}
		}
	})
}

func TestR79FreezeIgnoresTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, under *MapStore) {
		s.Set(storetest.Always(storetest.Freeze()))
		done := make(chan error, 1)
		go func() {
			_, err := s.Acquire(within(t, time.Second), ask(someone(1)))
			done <- err
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the frozen call answered %v", err)
		default:
		}
		if calls := s.Log(nil); len(calls) != 1 || calls[0].Done || calls[0].Left != time.Second {
			t.Errorf("the log of a frozen call = %v", calls)
		}
		s.Thaw()
		if err := <-done; err != nil {
			t.Errorf("the thawed call = %v, want its grant", err)
		}
		if !taken(t, under) {
			t.Error("the thawed request was not applied")
		}
	})
}

func TestR79LaterCopyMeetsWhateverHappenedSince(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, under *MapStore) {
		s.Set(storetest.On(storetest.Nth(storetest.VerbAcquire, 1), storetest.Double(time.Second)))
		for _, err := range []error{
			second(s.Acquire(t.Context(), ask(someone(1)))),
			s.Release(t.Context(), ask(someone(1))),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if taken(t, under) {
			t.Fatal("the name is not free after its release")
		}
		s.Wait()
		if !taken(t, under) {
			t.Error("the copy did not bring the vote back, as a doubled request does")
		}
	})
}

func second[T any](_ T, err error) error { return err }

func TestR79DoubledRefusalIsNotClean(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, _ *MapStore) {
		if _, err := s.Acquire(t.Context(), ask(someone(1))); err != nil {
			t.Fatal(err)
		}
		clean := func() bool {
			_, err := s.Acquire(t.Context(), ask(someone(2)))
			var r *quorum.RefusedError
			if !errors.As(err, &r) {
				t.Fatalf("Acquire = %v, want a refusal", err)
			}
			return r.Clean
		}
		if !clean() {
			t.Error("an unspoiled refusal to a stranger is not Clean")
		}
		s.Set(storetest.Always(storetest.Double(0)))
		if clean() {
			t.Error("a doubled refusal is Clean")
		}
		s.Pretend(func(l *quorum.Limits) { l.Doubles = true })
		if !s.Limits().Doubles {
			t.Error("Limits do not pretend")
		}
	})
}

func TestR79RestartEmptyOnTheSecondCall(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, _ *MapStore) {
		s.Set(storetest.On(storetest.Nth(storetest.VerbExtend, 2), storetest.Do(func() {
			s.Replace(&MapStore{Now: time.Now})
		})))
		o := someone(1)
		_, err := s.Acquire(t.Context(), ask(o))
		for _, err := range []error{err, second(s.Extend(t.Context(), ask(o)))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Extend(t.Context(), ask(o)); !errors.Is(err, quorum.ErrNotHeld) {
			t.Errorf("Extend after the restart = %v, want ErrNotHeld", err)
		}
	})
}

func TestR79PanicPassesAndIsLogged(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, _ *MapStore) {
		s.Set(storetest.Always(storetest.Panic("ouch")))
		defer func() {
			if p := recover(); p != "ouch" {
				t.Errorf("recovered %v, want ouch", p)
			}
			if c := s.Log(nil)[0]; !c.Done || c.Outcome != quorum.OutcomeUnknown {
				t.Errorf("logged %v", c)
			}
		}()
		_, _ = s.Acquire(t.Context(), ask(someone(1)))
	})
}

func TestR79LogTellsTheContext(t *testing.T) {
	bubble(t, func(t *testing.T, s *storetest.Spoiled, _ *MapStore) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_ = s.Release(ctx, ask(someone(1)))
		_, _ = s.Acquire(within(t, 3*time.Second), ask(someone(1)))
		calls := s.Log(nil)
		if calls[0].Context != context.Canceled || calls[0].Left != 0 || calls[0].Outcome != quorum.OutcomeUndelivered {
			t.Errorf("the first call = %+v, want one whose context was cancelled", calls[0])
		}
		if calls[1].Context != nil || calls[1].Left != 3*time.Second || calls[1].Outcome != quorum.OutcomeGranted {
			t.Errorf("the second call = %+v, want one with 3s left", calls[1])
		}
		if got := len(s.Log(storetest.Verbs(storetest.VerbAcquire))); got != 1 {
			t.Errorf("%d acquires are logged, want 1", got)
		}
	})
}

func TestR79RulesChangeWhileCallsRun(t *testing.T) {
	s := storetest.Spoil(&MapStore{Now: time.Now})
	defer s.Close()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range 50 {
				_, _ = s.Acquire(t.Context(), ask(someone(byte(i))))
				_ = s.Release(t.Context(), ask(someone(byte(i))))
				s.Set(storetest.On(storetest.Kinds(quorum.KindNew), storetest.Double(time.Microsecond)))
				s.Set()
			}
		})
	}
	wg.Wait()
	s.Wait()
	if got := len(s.Log(nil)); got != 800 {
		t.Errorf("%d calls are logged, want 800", got)
	}
}

func TestR79NoAbilityIsAddedOrHidden(t *testing.T) {
	plain := storetest.Spoil(&MapStore{Now: time.Now})
	if _, ok := quorum.As[quorum.HighWater](plain); ok {
		t.Error("a store without HighWater has it when spoiled")
	}
	able := storetest.Spoil(storetest.NewReference())
	h, ok := quorum.As[quorum.HighWater](able)
	if !ok {
		t.Fatal("HighWater is hidden")
	}
	i, ok := quorum.As[quorum.Inspector](able)
	if !ok {
		t.Fatal("Inspector is hidden")
	}
	m, ok := quorum.As[quorum.Membership](able)
	if !ok {
		t.Fatal("Membership is hidden")
	}
	able.Set(storetest.Always(storetest.Fail(nil)))
	_, served := m.Serves(t.Context(), ask(someone(1)))
	serve := m.Serve(t.Context(), ask(someone(1)), nil, []quorum.Fingerprint{1})
	_, step := h.ReadStep(t.Context(), ask(someone(1)))
	_, state := i.Inspect(t.Context(), ask(someone(1)))
	for _, err := range []error{step, state, served, serve, h.Raise(t.Context(), ask(someone(1)), quorum.Raise{})} {
		if err != storetest.ErrSpoiled {
			t.Errorf("a spoiled ability answered %v, want ErrSpoiled", err)
		}
	}
	if got := len(able.Log(nil)); got != 5 {
		t.Errorf("%d calls are logged, want 5", got)
	}
}

func TestR79SpoiledStoreKeepsTheContract(t *testing.T) {
	f := manual(func(s *MapStore) quorum.Store { return storetest.Spoil(s) })
	storetest.Run(t, f)
}

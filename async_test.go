package quorum_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
)

// later is a memory store that ends a call after the caller has gone on, as one
// that talks to a server does.
type later struct {
	*memstore.Store
	begun atomic.Int64
	asked atomic.Int64 // by the verbs' own methods, but for those of begun calls
	begin func(c *quorum.Call, carry func()) bool
}

func (s *later) Begin(c *quorum.Call) bool {
	s.begun.Add(1)
	return s.begin(c, func() { s.carry(c) })
}

func (s *later) carry(c *quorum.Call) {
	switch c.Verb {
	case quorum.VerbAcquire:
		c.End(s.Store.Acquire(c.Context(), c.Request))
	case quorum.VerbExtend:
		c.End(s.Store.Extend(c.Context(), c.Request))
	default:
		c.End(quorum.Grant{}, s.Store.Release(c.Context(), c.Request))
	}
}

func (s *later) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	s.asked.Add(1)
	return s.Store.Acquire(ctx, r)
}

func (s *later) Release(ctx context.Context, r quorum.Request) error {
	s.asked.Add(1)
	return s.Store.Release(ctx, r)
}

// asyncBed runs f in a bubble with a Locker of three such stores.
func asyncBed(t *testing.T, begin func(c *quorum.Call, carry func()) bool, f func(t *testing.T, l *quorum.Locker, stores []*later), options ...quorum.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var stores []*later
		var members []quorum.Store
		for i := range 3 {
			s := &later{Store: memstore.New(string(rune('a'+i)), memstore.WithClock(clock.Go())), begin: begin}
			stores, members = append(stores, s), append(members, s)
		}
		set, err := quorum.Combine(quorum.Consensus(), members...)
		if err != nil {
			t.Fatal(err)
		}
		l, err := quorum.New(set, append(options, quorum.WithClock(clock.Go()))...)
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = l.Close(context.Background()) // an error where no store ever answers
			time.Sleep(time.Minute)           // what a store is late with has ended
		}()
		f(t, l, stores)
	})
}

// taken takes a lock, and waits for the third store's answer too.
func taken(t *testing.T, l *quorum.Locker, options ...quorum.Option) *quorum.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), "k", options...)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return lease
}

// once takes a lock, has it renewed and gives it back.
func once(t *testing.T, l *quorum.Locker) {
	t.Helper()
	lease := taken(t, l)
	if err := lease.Extend(t.Context(), time.Minute); err != nil {
		t.Error(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func counts(stores []*later) (begun, asked int64) {
	for _, s := range stores {
		begun, asked = begun+s.begun.Load(), asked+s.asked.Load()
	}
	return begun, asked
}

// wantBegun wants each of the nine calls of once to be begun, and made once.
func wantBegun(t *testing.T, l *quorum.Locker, stores []*later) {
	t.Helper()
	once(t, l)
	if begun, asked := counts(stores); begun != 9 || asked != 0 {
		t.Errorf("%d calls begun and %d made by the verbs' methods, want 9 and 0", begun, asked)
	}
}

func TestAsyncCallsAreBegun(t *testing.T) {
	asyncBed(t, func(_ *quorum.Call, carry func()) bool {
		go carry()
		return true
	}, func(t *testing.T, l *quorum.Locker, stores []*later) {
		wantBegun(t, l, stores)
	})
}

// A call may end before Begin returns.
func TestAsyncCallsEndAtOnce(t *testing.T) {
	asyncBed(t, func(_ *quorum.Call, carry func()) bool {
		carry()
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) { once(t, l) })
}

func TestAsyncStoreThatWouldHaveToWait(t *testing.T) {
	asyncBed(t, func(*quorum.Call, func()) bool { return false }, func(t *testing.T, l *quorum.Locker, stores []*later) {
		once(t, l)
		if _, asked := counts(stores); asked != 6 { // and three Extend
			t.Errorf("%d calls by the verbs' methods, want 6", asked)
		}
	})
}

// The second end of a call is none, also once a later call of the lease is
// under way.
func TestAsyncCallEndsOnce(t *testing.T) {
	var first *quorum.Call
	asyncBed(t, func(c *quorum.Call, carry func()) bool {
		if first == nil && c.Verb == quorum.VerbAcquire {
			first = c
		}
		go carry()
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) {
		lease := taken(t, l)
		first.End(quorum.Grant{Token: 1000}, nil)
		first.End(quorum.Grant{}, errors.New("no"))
		for _, v := range lease.Votes() {
			if v.Outcome != quorum.OutcomeGranted || v.Token == 1000 {
				t.Errorf("vote %+v", v)
			}
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAsyncStoreThatPanics(t *testing.T) {
	var panics atomic.Int64
	asyncBed(t, func(c *quorum.Call, carry func()) bool {
		if c.Verb == quorum.VerbAcquire && panics.Add(1) == 1 {
			panic("broken")
		}
		go carry()
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) {
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err) // by the two others
		}
		unclear := 0
		for _, v := range lease.Votes() {
			if v.Outcome == quorum.OutcomeUnknown && v.Err != nil && strings.Contains(v.Err.Error(), "panicked: broken") {
				unclear++
			}
		}
		if unclear != 1 {
			t.Errorf("votes %+v, want one of a store that panicked", lease.Votes())
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// What ends after its limit is told so, and has held up nobody.
func TestAsyncCallThatEndsLate(t *testing.T) {
	asyncBed(t, func(c *quorum.Call, _ func()) bool {
		go func() {
			time.Sleep(c.Request.Limit + time.Second)
			c.End(quorum.Grant{}, errors.New("connection reset"))
		}()
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) {
		began := time.Now()
		_, err := l.TryAcquire(t.Context(), "k", quorum.CallLimit(time.Second), quorum.AskOrder(quorum.AllAtOnce))
		if took := time.Since(began); !errors.Is(err, quorum.ErrNoQuorum) || took >= 2*time.Second {
			t.Errorf("%v after %v, want no quorum before the stores' answers", err, took)
		}
	})
	var told []string // what the first of each store failed with
	asyncBed(t, func(c *quorum.Call, carry func()) bool {
		go func() {
			if c.Verb == quorum.VerbExtend {
				time.Sleep(c.Request.Limit)
				c.End(quorum.Grant{}, errors.New("connection reset"))
			} else {
				carry()
			}
		}()
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) {
		lease := taken(t, l, quorum.AskOrder(quorum.AllAtOnce))
		if err := lease.Extend(t.Context(), time.Minute); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("%v, want no quorum", err)
		}
		synctest.Wait()
		if want := "no answer within 1s (CallLimit): connection reset"; len(told) != 3 || told[0] != want || told[2] != want {
			t.Errorf("%q, want three times %q", told, want)
		}
		_ = lease.Release(t.Context())
	}, quorum.Observe(func() func(quorum.Event) {
		var mu sync.Mutex
		return func(e quorum.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == quorum.EventStoreFailed {
				told = append(told, e.Err.Error())
			}
		}
	}()))
}

// A store must not wait for an observer: its other answers come by the same
// goroutine.
func TestAsyncAnswersDoNotWaitForAnObserver(t *testing.T) {
	var block chan struct{} // of the bubble
	var answered atomic.Int64
	observe := quorum.Observe(func(e quorum.Event) {
		if e.Kind == quorum.EventAcquired {
			<-block
		}
	})
	asyncBed(t, func(_ *quorum.Call, carry func()) bool {
		go func() {
			carry()
			answered.Add(1)
		}()
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) {
		block = make(chan struct{})
		acquired := make(chan error, 1)
		go func() {
			_, err := l.Acquire(context.Background(), "k")
			acquired <- err
		}()
		synctest.Wait()
		if n := answered.Load(); n != 3 {
			t.Errorf("%d calls have ended while the observer blocks, want 3", n)
		}
		close(block)
		if err := <-acquired; err != nil {
			t.Error(err)
		}
	}, observe)
}

// What wraps an Async store is asked itself, not passed by.
func TestAsyncIsNotLookedForBeneath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &later{Store: memstore.New("a", memstore.WithClock(clock.Go()))}
		l, err := quorum.New(struct{ quorum.Store }{s}, quorum.WithClock(clock.Go()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close(context.Background()) }()
		lease, err := l.Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil || s.begun.Load() != 0 || s.asked.Load() != 2 {
			t.Errorf("%v, %d begun, %d asked", err, s.begun.Load(), s.asked.Load())
		}
	})
}

// A promotion hands the machine on to another lease while answers come.
func TestAsyncPromotion(t *testing.T) {
	asyncBed(t, func(_ *quorum.Call, carry func()) bool {
		go carry()
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) {
		for range 20 {
			lease := taken(t, l, quorum.Shared())
			heir, err := lease.Promote(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := heir.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A store that ends a call and declines it has made it.
func TestAsyncCallEndedAndDeclined(t *testing.T) {
	asyncBed(t, func(_ *quorum.Call, carry func()) bool {
		carry()
		return false
	}, func(t *testing.T, l *quorum.Locker, stores []*later) {
		wantBegun(t, l, stores)
	})
}

// An Extend that answers no token, or any but its floor, has lost the vote, as by
// the verb's own method.
func TestAsyncExtendWithoutToken(t *testing.T) {
	asyncBed(t, func(c *quorum.Call, carry func()) bool {
		if c.Verb == quorum.VerbExtend {
			go c.End(quorum.Grant{}, nil)
		} else {
			go carry()
		}
		return true
	}, func(t *testing.T, l *quorum.Locker, _ []*later) {
		lease := taken(t, l)
		_ = lease.Extend(t.Context(), 20*time.Second)
		if lease.Err() == nil {
			t.Error("the lease stands on votes that answered another token than its own")
		}
	})
}

// nameless panics when it is asked for its name.
type nameless struct {
	*later
	panics atomic.Bool
}

func (s *nameless) Name() string {
	if s.panics.CompareAndSwap(true, false) {
		panic("no name")
	}
	return s.later.Name()
}

// What panics beneath End is not the store's Begin, and nothing that a call's
// outcome could hide.
func TestAsyncPanicBeneathEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &nameless{later: &later{Store: memstore.New("a", memstore.WithClock(clock.Go()))}}
		s.begin = func(c *quorum.Call, carry func()) bool {
			if c.Verb == quorum.VerbAcquire {
				s.panics.Store(true)
				c.End(quorum.Grant{}, nil) // no token: the error of that names the store
			} else {
				carry()
			}
			return true
		}
		l, err := quorum.New(s, quorum.WithClock(clock.Go()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if p := recover(); p != "no name" {
				t.Errorf("recovered %v, want the panic itself", p)
			}
		}()
		_, err = l.TryAcquire(t.Context(), "k")
		t.Errorf("returned %v", err)
	})
}

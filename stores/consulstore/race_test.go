package consulstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// jump is a clock that a test moves ahead.
type jump struct{ ahead atomic.Int64 }

func (j *jump) Now() time.Time          { return time.Now().Add(time.Duration(j.ahead.Load())) }
func (j *jump) Advance(d time.Duration) { j.ahead.Add(int64(d)) }
func (j *jump) of(s *consulstore.Store) { s.SetWall(j.Now) }
func (j *jump) pastRest()               { j.Advance(maxTTL + 2*consulstore.StepPeriod + time.Second) }

// TestNoTokenTwiceWhileCountersAreDropped lets 50 goroutines use fresh and used
// names through two clients, while the steps pass ten thousand times as fast
// and a cleaner drops every counter that rests.
func TestNoTokenTwiceWhileCountersAreDropped(t *testing.T) {
	s, node := fresh(t)
	clients := []*consulstore.Store{s, store(t, client(t, node.Addr))}
	j := &jump{}
	for _, s := range clients {
		j.of(s)
	}
	var mu sync.Mutex
	given := map[string][]int64{}
	stop := make(chan struct{})
	var dropped int
	var helpers, workers sync.WaitGroup
	helpers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			j.pastRest()
			n, err := s.Clean(t.Context())
			if err != nil {
				t.Errorf("Clean: %v", err)
				return
			}
			dropped += n
		}
	})
	for i := range 50 {
		workers.Go(func() {
			for n := range 12 {
				r := ask(fmt.Sprintf("name %d", rand.IntN(4)), owner())
				if n%4 == 0 {
					r.Key = fmt.Sprintf("fresh %d %d", i/2, n)
				}
				g, err := clients[i%2].Acquire(t.Context(), r)
				if err != nil {
					if !errors.Is(err, quorum.ErrHeld) {
						t.Errorf("acquire: %v", err)
					}
					continue
				}
				mu.Lock() // while it is held, so that nobody else's comes between
				given[r.Key] = append(given[r.Key], g.Token)
				mu.Unlock()
				if err := clients[i%2].Release(t.Context(), r); err != nil {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	helpers.Wait()
	total := 0
	for key, tokens := range given {
		total += len(tokens)
		for i, token := range tokens[1:] {
			if token <= tokens[i] {
				t.Errorf("%s: token %d after %d", key, token, tokens[i])
			}
		}
	}
	if total == 0 || dropped == 0 {
		t.Errorf("%d grants and %d counters dropped: nothing was tried", total, dropped)
	}
	t.Logf("%d grants, %d counters dropped", total, dropped)
}

// TestCounterDroppedAndMadeAgainIsNoticed is the race that comparing the record
// is for: a counter is absent when one client reads, made by another, dropped
// after a step, and absent again when the first one writes.
func TestCounterDroppedAndMadeAgainIsNoticed(t *testing.T) {
	for _, blind := range []bool{false, true} {
		t.Run(fmt.Sprintf("blind=%v", blind), func(t *testing.T) {
			s, node := fresh(t)
			other := store(t, client(t, node.Addr))
			j := &jump{}
			j.of(other)
			if blind {
				s.Blind()
			}
			var theirs int64
			once := sync.OnceFunc(func() {
				r := ask("k", owner())
				theirs = mustAcquire(t, other, r).Token
				mustRelease(t, other, r)
				j.pastRest()
				moved := ask("another name", owner())
				mustAcquire(t, other, moved) // moves the step
				mustRelease(t, other, moved)
				await(t, "the counter to be dropped", func() bool {
					if _, err := other.Clean(t.Context()); err != nil {
						t.Error(err)
					}
					state, err := other.Inspect(t.Context(), ask("k", owner()))
					return err == nil && state.Counter == 0
				})
			})
			s.OnRead(once)
			ours := mustAcquire(t, s, ask("k", owner())).Token
			if grew := ours > theirs; grew == blind {
				t.Errorf("token %d after %d, with the record compared: %v", ours, theirs, !blind)
			}
		})
	}
}

// TestStepFollowsClocksUpwardOnly: a client whose clock is behind moves nothing,
// one that is far ahead no more than 2^14 steps at once.
func TestStepFollowsClocksUpwardOnly(t *testing.T) {
	s, node := fresh(t)
	step := func() int64 {
		t.Helper()
		got, err := s.ReadStep(t.Context(), ask("", quorum.Owner{}))
		if err != nil {
			t.Fatal(err)
		}
		return got.Step
	}
	before := step()
	wrong := store(t, client(t, node.Addr))
	use := func() error {
		r := ask("k", owner())
		_, err := wrong.Acquire(t.Context(), r)
		if err == nil {
			mustRelease(t, wrong, r)
		}
		return err
	}
	wrong.SetWall(func() time.Time { return time.Now().Add(-time.Hour) })
	if err := use(); err != nil || step() > before+1 {
		t.Errorf("R21: a clock an hour behind moved the step from %d to %d (%v)", before, step(), err)
	}
	wrong.SetWall(func() time.Time { return time.Now().AddDate(10, 0, 0) })
	if err := use(); err != nil || step() > before+1+consulstore.StepMost {
		t.Errorf("a clock ten years ahead moved the step from %d to %d at once (%v)", before, step(), err)
	}
	wrong.SetWall(func() time.Time { return time.Now().AddDate(1000, 0, 0) })
	if err := use(); quorum.OutcomeOf(err) != quorum.OutcomeGranted || step() > before+2+2*consulstore.StepMost {
		t.Errorf("a clock a thousand years ahead: %v, step %d", err, step())
	}
}

func TestR58CounterInUseIsNotDropped(t *testing.T) {
	s, _ := fresh(t)
	j := &jump{}
	j.of(s)
	held, idle := ask("held", owner()), ask("idle", owner())
	mustAcquire(t, s, held)
	token := mustAcquire(t, s, idle).Token
	mustRelease(t, s, idle)
	if n, err := s.Clean(t.Context()); n != 0 || err != nil {
		t.Errorf("%d counters were dropped that had not rested (%v)", n, err)
	}
	j.pastRest()
	mustExtend(t, s, held) // moves the step, and has the store clean by itself
	await(t, "the idle counter to be dropped", func() bool {
		state, err := s.Inspect(t.Context(), idle)
		return err == nil && state.Counter == 0
	})
	if state, err := s.Inspect(t.Context(), held); err != nil || state.Counter == 0 {
		t.Errorf("the counter of a name that is held: %+v %v", state, err)
	}
	mustExtend(t, s, held)
	if g := mustAcquire(t, s, idle); g.Token <= token {
		t.Errorf("token %d after the counter was dropped, %d before", g.Token, token)
	}
}

// TestLateTransactionIsRefused: a request that arrives after the release of its
// owner leaves nothing.
func TestLateTransactionIsRefused(t *testing.T) {
	node := testserver.Consul(t)
	s := store(t, client(t, node.Addr))
	declareNew(t, s)
	other := store(t, client(t, node.Addr))
	a := ask("k", owner())
	s.OnRead(sync.OnceFunc(func() {
		late := a
		late.Entomb = true
		wantOutcome(t, other.Release(t.Context(), late), quorum.OutcomeNotHeld)
	}))
	_, err := s.Acquire(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeContended)
	mustAcquire(t, s, ask("k", owner()))
}

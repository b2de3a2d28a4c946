package kubestore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// fresh is a store that was declared new, and its server.
func fresh(t *testing.T) (*kubestore.Store, *testserver.LeasesNode) {
	t.Helper()
	node := testserver.Leases(t)
	s := open(t, node.Kubeconfig(node.Admin))
	declareNew(t, s)
	return s, node
}

// TestTwentyClientsRace has twenty clients ask for one name at once, again and
// again: one wins, and the others are told that it is held, never of a conflict.
func TestTwentyClientsRace(t *testing.T) {
	s, node := fresh(t)
	kubeconfig := node.Kubeconfig(node.Admin)
	clients := []*kubestore.Store{s}
	for range 19 {
		clients = append(clients, open(t, kubeconfig))
	}
	last := int64(0)
	for round := range 4 {
		owners := make([]quorum.Request, len(clients))
		grants := make([]quorum.Grant, len(clients))
		errs := make([]error, len(clients))
		var all sync.WaitGroup
		for i, s := range clients {
			owners[i] = ask("k", owner())
			all.Go(func() { grants[i], errs[i] = s.Acquire(t.Context(), owners[i]) })
		}
		all.Wait()
		won := 0
		for i, err := range errs {
			if !errors.Is(err, quorum.ErrHeld) && err != nil {
				t.Errorf("round %d, client %d: %v, want ErrHeld", round, i, err)
			}
			if err != nil {
				continue
			}
			if won++; grants[i].Token <= last {
				t.Errorf("round %d: token %d after %d", round, grants[i].Token, last)
			}
			last = grants[i].Token
			mustRelease(t, clients[(i+1)%len(clients)], owners[i])
		}
		if won != 1 {
			t.Errorf("round %d: %d clients won, want 1", round, won)
		}
	}
}

// TestRecordChangesBeforeTheNameIsWritten: what the record says at the very
// moment decides, although two Leases are no one step of the server.
func TestRecordChangesBeforeTheNameIsWritten(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, other *kubestore.Store) error
		want   quorum.Outcome
	}{
		"a quarantine begins": {func(t *testing.T, other *kubestore.Store) error {
			return other.Raise(t.Context(), ask("", quorum.Owner{}), quorum.Raise{Forgotten: true})
		}, quorum.OutcomeQuarantined},
		"another set": {func(t *testing.T, other *kubestore.Store) error {
			return other.Serve(t.Context(), ask("", quorum.Owner{}), []quorum.Fingerprint{0xfeed}, []quorum.Fingerprint{0xbeef})
		}, quorum.OutcomeMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			s, node := fresh(t)
			other := open(t, node.Kubeconfig(node.Admin))
			used := ask("k", owner())
			mustAcquire(t, s, used)
			mustRelease(t, s, used)
			var err error
			s.OnRead(sync.OnceFunc(func() { err = c.change(t, other) }))
			_, refused := s.Acquire(t.Context(), ask("k", owner()))
			if err != nil {
				t.Fatal(err)
			}
			wantOutcome(t, refused, c.want)
		})
	}
}

// TestCounterDroppedAndMadeAgainIsNoticed: a name has no Lease when one client
// reads, another makes it, drops it after a step, and it has none again when the
// first one writes.
func TestCounterDroppedAndMadeAgainIsNoticed(t *testing.T) {
	s, node := fresh(t)
	other := open(t, node.Kubeconfig(node.Admin))
	now := time.Now()
	other.SetWall(func() time.Time { return now })
	var theirs int64
	s.OnRead(sync.OnceFunc(func() {
		r := ask("k", owner())
		theirs = mustAcquire(t, other, r).Token
		mustRelease(t, other, r)
		now = now.Add(maxTTL + 4*kubestore.StepPeriod)
		mustAcquire(t, other, ask("another", owner())) // moves the step
		await(t, "the counter to be dropped", func() bool {
			_, err := other.Clean(t.Context())
			state, failed := other.Inspect(t.Context(), ask("k", owner()))
			return errors.Join(err, failed) == nil && state.Counter == 0
		})
	}))
	if ours := mustAcquire(t, s, ask("k", owner())).Token; ours <= theirs {
		t.Errorf("token %d after %d", ours, theirs)
	}
}

// late holds the writes of Leases back while hold is set, and sends them when
// the caller has given up; twice sends each again.
type late struct {
	http.RoundTripper
	mu    sync.Mutex
	hold  bool
	twice bool
	kept  []func() (*http.Response, error)
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	l.mu.Lock()
	hold, twice := l.hold, l.twice
	l.mu.Unlock()
	if r.Method != http.MethodPut || !hold && !twice {
		return l.RoundTripper.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	send := func() (*http.Response, error) {
		again := r.Clone(context.WithoutCancel(r.Context()))
		again.Body = io.NopCloser(bytes.NewReader(body))
		return l.RoundTripper.RoundTrip(again)
	}
	if hold {
		l.mu.Lock()
		l.kept = append(l.kept, send)
		l.mu.Unlock()
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	first, err := send()
	if err == nil {
		if second, err := send(); err == nil {
			_ = second.Body.Close()
		}
	}
	return first, err
}

// TestLateAndDoubledWritesChangeNothing: what a write compares is gone when it
// comes.
func TestLateAndDoubledWritesChangeNothing(t *testing.T) {
	node := testserver.Leases(t)
	transport := &late{}
	s := store(t, client(t, node, func(rt http.RoundTripper) http.RoundTripper { transport.RoundTripper = rt; return transport }))
	declareNew(t, s)
	used := ask("k", owner())
	token := mustAcquire(t, s, used).Token
	mustRelease(t, s, used)

	transport.hold = true
	a := ask("k", owner())
	a.Limit = 100 * time.Millisecond
	_, err := s.Acquire(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeUnknown)
	transport.mu.Lock()
	transport.hold = false
	transport.mu.Unlock()
	a.Limit, a.Entomb = 10*time.Second, true
	wantOutcome(t, s.Release(t.Context(), a), quorum.OutcomeNotHeld)
	if len(transport.kept) != 1 {
		t.Fatalf("%d writes were held back, want 1", len(transport.kept))
	}
	reply, err := transport.kept[0]()
	if err != nil {
		t.Fatal(err)
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusConflict {
		t.Errorf("the late write is answered %s, want a conflict", reply.Status)
	}

	transport.twice = true
	for n := range int64(3) {
		a := ask("k", owner())
		if g := mustAcquire(t, s, a); g.Token != token+1+n {
			t.Errorf("token %d, want %d", g.Token, token+1+n)
		}
		mustRelease(t, s, a)
		wantOutcome(t, s.Release(t.Context(), a), quorum.OutcomeNotHeld)
	}
}

// TestNoTokenTwiceWhileCountersAreDropped lets goroutines use fresh and used
// names through two clients, while steps pass at once and a cleaner drops every
// Lease that rests.
func TestNoTokenTwiceWhileCountersAreDropped(t *testing.T) {
	s, node := fresh(t)
	clients := []*kubestore.Store{s, open(t, node.Kubeconfig(node.Admin))}
	var mu sync.Mutex
	now := time.Now()
	for _, s := range clients {
		s.SetWall(func() time.Time { mu.Lock(); defer mu.Unlock(); return now })
	}
	given := map[string][]int64{}
	stop := make(chan struct{})
	dropped := 0
	var helpers, workers sync.WaitGroup
	helpers.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			mu.Lock()
			now = now.Add(maxTTL + 3*kubestore.StepPeriod)
			mu.Unlock()
			n, err := s.Clean(t.Context())
			if err != nil {
				t.Errorf("Clean: %v", err)
				return
			}
			dropped += n
		}
	})
	for i := range 10 {
		workers.Go(func() {
			for n := range 8 {
				r := ask(fmt.Sprint("name ", n%3), owner())
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
		t.Errorf("%d grants and %d Leases dropped: nothing was tried", total, dropped)
	}
	t.Logf("%d grants, %d Leases dropped", total, dropped)
}

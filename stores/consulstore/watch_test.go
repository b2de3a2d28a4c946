package consulstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// watch returns what a watch of a name tells, and ends it with the test.
func watch(t *testing.T, s *consulstore.Store, key string) <-chan quorum.Wake {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	wakes, ended := make(chan quorum.Wake, 100), make(chan error, 1)
	go func() { ended <- s.Watch(ctx, ask(key, quorum.Owner{}), func(w quorum.Wake) { wakes <- w }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Watch = %v, want nil when its context ended", err)
		}
	})
	wantWake(t, wakes, quorum.WakeStarted)
	return wakes
}

func wantWake(t *testing.T, wakes <-chan quorum.Wake, kind quorum.WakeKind) {
	t.Helper()
	select {
	case w := <-wakes:
		if w.Kind != kind {
			t.Errorf("the watch told %v, want %v", w.Kind, kind)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("the watch never told %v", kind)
	}
}

// TestR12WatchTellsOfEveryEnd: a release, an expiry, a deletion by hand (R24)
// and a take-over are told, and a grant is not.
func TestR12WatchTellsOfEveryEnd(t *testing.T) {
	s, node := fresh(t)
	c := client(t, node.Addr)
	wakes := watch(t, s, "k")
	a := ask("k", owner())
	mustAcquire(t, s, a)
	mustRelease(t, s, a)
	wantWake(t, wakes, quorum.WakeChanged)

	mustAcquire(t, s, ending("k", owner()))
	wantWake(t, wakes, quorum.WakeChanged) // it ends by itself

	long := ask("k", owner())
	mustAcquire(t, s, long)
	if _, err := c.KV().DeleteTree("quorum/"+consulstore.NameFolder("k")+"vote/", nil); err != nil {
		t.Fatal(err)
	}
	wantWake(t, wakes, quorum.WakeChanged)

	mustAcquire(t, s, long)
	force := ask("k", owner())
	force.Kind = quorum.KindForce
	mustAcquire(t, s, force)
	wantWake(t, wakes, quorum.WakeChanged)
	mustExtend(t, s, force)
	select {
	case w := <-wakes:
		t.Errorf("the watch told %v of nothing that ended", w.Kind)
	default:
	}
	// Names that are alike are not watched together.
	near := ask("k/", owner())
	mustAcquire(t, s, near)
	mustRelease(t, s, near)
	mustRelease(t, s, force)
	wantWake(t, wakes, quorum.WakeChanged)
}

func TestWatchOfAServerThatDiesFails(t *testing.T) {
	s, node := fresh(t)
	ended := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		ended <- s.Watch(t.Context(), ask("k", quorum.Owner{}), func(w quorum.Wake) { close(started) })
	}()
	<-started
	node.Stop()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("Watch = nil although wakes may have been missed")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("Watch goes on without a server")
	}
}

// TestHandOver counts what a waiter does after it was told: two round trips.
func TestHandOver(t *testing.T) {
	s, node := fresh(t)
	c, requests := countedClient(t, node.Addr)
	waiter := store(t, c)
	holder := ask("k", owner())
	mustAcquire(t, s, holder)
	_, err := waiter.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeContended)
	wakes := watch(t, waiter, "k")
	mustRelease(t, s, holder)
	wantWake(t, wakes, quorum.WakeChanged)
	before := requests.n.Load()
	mustAcquire(t, waiter, ask("k", owner()))
	if n := requests.n.Load() - before; n > 4 { // one may be the watch's next
		t.Errorf("the waiter made %d requests after it was told", n)
	}
}

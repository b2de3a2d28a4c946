package etcdstore_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
)

// watching starts a watch that has begun, and returns what it tells.
func watching(t *testing.T, s quorum.Watcher, r quorum.Request) (wakes chan quorum.Wake, end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	wakes, done := make(chan quorum.Wake, 100), make(chan error, 1)
	go func() { done <- s.Watch(ctx, r, func(w quorum.Wake) { wakes <- w }) }()
	t.Cleanup(cancel)
	if w := next(t, wakes); w.Kind != quorum.WakeStarted {
		t.Fatalf("the watch told %v first, want started", w.Kind)
	}
	return wakes, func() error {
		cancel()
		return <-done
	}
}

func next(t *testing.T, wakes chan quorum.Wake) quorum.Wake {
	t.Helper()
	select {
	case w := <-wakes:
		return w
	case <-time.After(slack):
		t.Fatalf("nothing was told within %v", slack)
		return quorum.Wake{}
	}
}

func TestR12WatchTellsOfEveryEnd(t *testing.T) {
	_, c, s := fresh(t)
	wakes, end := watching(t, s, ask("k", quorum.Owner{}))
	told := func(what string) {
		t.Helper()
		if w := next(t, wakes); w.Kind != quorum.WakeChanged {
			t.Errorf("%s is told as %v", what, w.Kind)
		}
		if len(wakes) > 0 {
			t.Errorf("%s is told more than once", what)
		}
	}
	r := ask("k", owner())
	mustAcquire(t, s, r)
	mustExtend(t, s, r)
	mustRelease(t, s, r)
	told("a release")
	r.Owner = owner()
	mustAcquire(t, s, r)
	force := ask2(r)
	force.Kind = quorum.KindForce
	mustAcquire(t, s, force)
	told("a take-over")
	if _, err := c.Delete(t.Context(), "quorum/name/k/vote"); err != nil {
		t.Fatal(err)
	}
	told("R24 a deletion by hand")
	r.Owner, r.TTL = owner(), time.Second
	mustAcquire(t, s, r)
	told("an expiry")
	down := ask("k", owner())
	mustAcquire(t, s, down)
	down.Kind, down.Mode, down.Owner.Attempt = quorum.KindConvert, quorum.ModeShared, 2
	mustAcquire(t, s, down)
	told("a demotion")
	mustRelease(t, s, down)
	told("a reader's release")
	other := ask("k/vote", owner()) // a name that looks like a key of the other's
	mustAcquire(t, s, other)
	mustRelease(t, s, other)
	if err := end(); err != nil || len(wakes) > 0 {
		t.Errorf("the watch ended with %v, and %d wakes of another name", err, len(wakes))
	}
}

// With a holder that releases and one that waits, the waiter sends its Acquire
// after one wake, and has the name by two round trips.
func TestHandOverIsOneWakeAndTwoRoundTrips(t *testing.T) {
	node, _, s := fresh(t)
	w, c := wired(t, node)
	waiter := store(t, c)
	held, r := ask("k", owner()), ask("k", owner())
	mustAcquire(t, s, held)
	r.Wait = quorum.WaitWatch
	wakes, _ := watching(t, waiter, r)
	_, err := waiter.Acquire(t.Context(), r)
	wantOutcome(t, err, quorum.OutcomeContended)
	w.take()
	mustRelease(t, s, held)
	next(t, wakes)
	mustAcquire(t, waiter, r)
	if got := w.take(); got != "LeaseKeepAlive read txn" {
		t.Errorf("from the release to the grant the waiter sent %q", got)
	}
}

func TestWatchesShareOneStream(t *testing.T) {
	node, _, _ := fresh(t)
	w, c := wired(t, node)
	s := store(t, c)
	for _, key := range []string{"a", "b", "c"} {
		watching(t, s, ask(key, quorum.Owner{}))
	}
	if got := w.take(); got != "Watch" {
		t.Errorf("three watches sent %q, want one stream", got)
	}
}

// A watch goes on over a restart of the server; where what happened meanwhile
// was compacted, it says that it cannot.
func TestWatchOverARestart(t *testing.T) {
	node, _, s := fresh(t)
	wakes, end := watching(t, s, ask("k", quorum.Owner{}))
	node.Restart()
	r := ask("k", owner())
	await(t, slack, "the server to be reached again", func() bool {
		_, err := s.Acquire(t.Context(), r)
		return err == nil
	})
	mustRelease(t, s, r)
	next(t, wakes)
	if err := end(); err != nil {
		t.Errorf("the watch ended with %v", err)
	}
}

func TestCompactedWatchSaysThatItMissedSomething(t *testing.T) {
	nodes := testserver.EtcdCluster(t, 1)
	far, near := client(t, nodes...), client(t, nodes...)
	s := store(t, far)
	declareNew(t, s)
	done := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		done <- s.Watch(t.Context(), ask("k", quorum.Owner{}), func(w quorum.Wake) {
			if w.Kind == quorum.WakeStarted {
				close(started)
			}
		})
	}()
	<-started
	far.SetEndpoints("127.0.0.1:1") // the watch is cut off, and not ended
	nodes[0].Restart()
	other := store(t, near)
	var revision int64
	await(t, slack, "the server to be reached again", func() bool {
		r := ask("k", owner())
		if _, err := other.Acquire(t.Context(), r); err != nil {
			return false
		}
		mustRelease(t, other, r)
		reply, err := near.Get(t.Context(), "quorum/record")
		if err == nil {
			revision = reply.Header.Revision
		}
		return err == nil
	})
	if _, err := near.Compact(t.Context(), revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	far.SetEndpoints(nodes[0].Addr)
	select {
	case err := <-done:
		if err == nil {
			t.Error("the watch ended as if it had missed nothing")
		}
	case <-time.After(2 * slack):
		t.Error("the watch did not notice that what it missed was compacted")
	}
}

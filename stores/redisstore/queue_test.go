package redisstore_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// waits asks for a place in the line. A turn and an entry last for a minute.
func waits(key string, o quorum.Owner, ticket int64) quorum.Request {
	r := ask(key, o)
	r.Wait, r.Ticket, r.Keep, r.Claim = quorum.WaitTake, ticket, time.Minute, time.Minute
	return r
}

func TestAReleaseTellsWhoseTurnItIs(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s, other := store(t, c), store(t, c) // as if of two processes
	holder := waits("k", owner(), 1)
	declareNewFor(t, s, holder)
	g := mustAcquire(t, s, holder)
	w, v := watch(t, s, holder), watch(t, other, holder)
	first, second := waits("k", owner(), 2), waits("k", owner(), 3)
	ownChannels(t, s, other)
	for _, r := range []quorum.Request{second, first} {
		_, err := other.Acquire(t.Context(), r)
		wantOutcome(t, err, quorum.OutcomeContended)
	}
	mustRelease(t, s, holder)
	if k := v.want(t, quorum.WakeTurn); k.Owner != first.Owner.Digest() || k.Counter != g.Token {
		t.Errorf("turn %+v, want %s and counter %d", k, first.Owner.Digest(), g.Token)
	}
	if k := v.want(t, quorum.WakeNext); k.Owner != second.Owner.Digest() || k.After != first.Claim {
		t.Errorf("next %+v, want %s after %v", k, second.Owner.Digest(), first.Claim)
	}
	if g := mustAcquire(t, other, first); g.Ticket != 2 {
		t.Errorf("grant %+v, want ticket 2", g)
	}
	mustRelease(t, other, first)
	if k := v.want(t, quorum.WakeTurn); k.Owner != second.Owner.Digest() {
		t.Errorf("turn %+v, want %s", k, second.Owner.Digest())
	}
	mustRelease(t, other, second)
	v.want(t, quorum.WakeChanged) // nobody stands in line any more
	w.want(t, quorum.WakeChanged) // and nothing before, of the other process's waiters
}

// TestR12AReleaseWakesNobodyInVain: what a hand-over costs a server must not grow
// with those who wait.
func TestR12AReleaseWakesNobodyInVain(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	holder := waits("k", owner(), 1)
	first := store(t, c)
	declareNewFor(t, first, holder)
	mustAcquire(t, first, holder)
	var all []*watched
	for i := range 10 { // each as if a process of its own
		s := store(t, c)
		all = append(all, watch(t, s, holder))
		ownChannels(t, s)
		_, err := s.Acquire(t.Context(), waits("k", owner(), int64(2+i)))
		wantOutcome(t, err, quorum.OutcomeContended)
	}
	mustRelease(t, first, holder)
	all[0].want(t, quorum.WakeTurn)
	all[1].want(t, quorum.WakeNext)
	if n := commands(t, c, "publish"); n != "2" {
		t.Errorf("a release with ten who wait sent %s messages, want 2", n)
	}
	for i, w := range all {
		if len(w.wakes) > 0 {
			t.Errorf("waiter %d was told %+v", i, <-w.wakes)
		}
	}
}

// ownChannels waits until stores can be told the turns of their own waiters.
func ownChannels(t *testing.T, stores ...*redisstore.Store) {
	t.Helper()
	for _, s := range stores {
		await(t, "the store's own channel", func() bool { return redisstore.Listens(s, "k") })
	}
}

// TestWaitersOfADeadProcessAreLeftOut: the server counts who listens, so that
// nobody waits for the turns of those who died.
func TestWaitersOfADeadProcessAreLeftOut(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	alive, dead := store(t, c), store(t, c)
	holder := waits("k", owner(), 1)
	declareNewFor(t, alive, holder)
	mustAcquire(t, alive, holder)
	w, _ := watch(t, alive, holder), watch(t, dead, holder)
	ownChannels(t, alive, dead)
	for ticket := range int64(5) {
		_, err := dead.Acquire(t.Context(), waits("k", owner(), 2+ticket))
		wantOutcome(t, err, quorum.OutcomeContended)
	}
	last := waits("k", owner(), 9)
	_, err := alive.Acquire(t.Context(), last)
	wantOutcome(t, err, quorum.OutcomeContended)
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the server to see one listener", func() bool {
		return c.PubSubNumSub(t.Context(), "{quorum}:wake:k").Val()["{quorum}:wake:k"] == 1
	})
	mustRelease(t, alive, holder)
	if k := w.want(t, quorum.WakeTurn); k.Owner != last.Owner.Digest() {
		t.Errorf("the turn is %s's, want %s's", k.Owner, last.Owner.Digest())
	}
	mustAcquire(t, alive, last)
}

// TestAQueueLeavesNothing looks at the keys after the last waiter.
func TestAQueueLeavesNothing(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	holder := waits("k", owner(), 1)
	declareNewFor(t, s, holder)
	mustAcquire(t, s, holder)
	if count := c.Get(t.Context(), "{quorum}:count:k").Val(); len(keysOf(t, c)) != 3 || count[len(count)-1] != 'w' {
		t.Errorf("who found nobody before it left %q and the counter %q", keysOf(t, c), count)
	}
	waiter := waits("k", owner(), 2)
	_, err := s.Acquire(t.Context(), waiter)
	wantOutcome(t, err, quorum.OutcomeContended)
	if n := len(keysOf(t, c)); n != 6 { // record, vote, count; queue, stay, line
		t.Errorf("%d keys with one waiter: %q", n, keysOf(t, c))
	}
	for _, key := range keysOf(t, c) {
		if d := c.TTL(t.Context(), key).Val(); d <= 0 && key != "{quorum}:record" {
			t.Errorf("%s never expires", key)
		}
	}
	mustRelease(t, s, holder)
	mustAcquire(t, s, waiter)
	mustRelease(t, s, waiter)
	if keys := keysOf(t, c); len(keys) != 2 { // record, count
		t.Errorf("left: %q", keys)
	}
	if count := c.Get(t.Context(), "{quorum}:count:k").Val(); count[len(count)-1] != 'w' {
		t.Errorf("the counter %q still says that somebody waits", count)
	}
}

// TestALineKeepsItsName: the counter says that somebody waits, and the vote how
// the last holder ended. Neither may go while somebody stands in line.
func TestALineKeepsItsName(t *testing.T) {
	node, clock := stoppedRedis(t)
	s := store(t, client(t, node.Addr))
	holder, waiter := waits("k", owner(), 1), waits("k", owner(), 2)
	declareNewFor(t, s, holder)
	g := mustAcquire(t, s, holder)
	rests := time.Minute + 10*time.Minute // MaxTTL, and 10 minutes' rest
	clock.Advance(rests - 10*time.Second)
	waiter.Wait = quorum.WaitQueue
	_, err := s.Acquire(t.Context(), waiter)
	wantOutcome(t, err, quorum.OutcomeReady)
	clock.Advance(30 * time.Second)
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeContended)
	waiter.Wait = quorum.WaitTake
	if next := mustAcquire(t, s, waiter); next.Token != g.Token+1 || next.Previous != quorum.PreviousExpired {
		t.Errorf("granted %d after one that %v, want %d after one that expired", next.Token, next.Previous, g.Token+1)
	}
}

// TestATurnOutlivesAReleaseAfterTheClockWentBack: a queue's ends are brought near
// by every verb, so that no key of it goes before what it holds is over.
func TestATurnOutlivesAReleaseAfterTheClockWentBack(t *testing.T) {
	node, clock := stoppedRedis(t)
	s := store(t, client(t, node.Addr))
	ahead, behind := waits("k", owner(), 1), waits("k", owner(), 2)
	declareNewFor(t, s, ahead)
	ahead.Wait, ahead.Claim = quorum.WaitQueue, 10*time.Second
	_, err := s.Acquire(t.Context(), ahead)
	wantOutcome(t, err, quorum.OutcomeReady)
	clock.Advance(-4 * time.Minute)
	wantOutcome(t, s.Release(t.Context(), ask("k", owner())), quorum.OutcomeNotHeld)
	clock.Advance(9 * time.Second)
	_, err = s.Acquire(t.Context(), behind)
	wantOutcome(t, err, quorum.OutcomeContended)
	clock.Advance(2 * time.Second)
	mustAcquire(t, s, behind)
}

package consulstore_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// waits asks for a place in the line.
func waits(o quorum.Owner, ticket int64) quorum.Request {
	r := ask("k", o)
	r.Wait, r.Ticket, r.Keep, r.Claim = quorum.WaitTake, ticket, time.Minute, maxTTL
	return r
}

// rank demands that a request waits, and returns where.
func rank(t *testing.T, s *consulstore.Store, r quorum.Request) *quorum.RefusedError {
	t.Helper()
	_, err := s.Acquire(t.Context(), r)
	var refused *quorum.RefusedError
	if !errors.As(err, &refused) || refused.Outcome != quorum.OutcomeContended {
		t.Fatalf("%v, want a place in the line", err)
	}
	return refused
}

// wantTurn waits until a waiter is told its turn. Others may be told before.
func wantTurn(t *testing.T, wakes <-chan quorum.Wake, r quorum.Request) {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
		select {
		case w := <-wakes:
			if w.Kind == quorum.WakeTurn && w.Owner == r.Owner.Digest() {
				return
			}
		case <-end:
			t.Fatalf("the waiter with ticket %d was never told its turn", r.Ticket)
		}
	}
}

// left are the keys of queues and bells.
func left(t *testing.T, c *api.Client) (keys []string) {
	t.Helper()
	all, _, err := c.KV().Keys("quorum/", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range all {
		if strings.Contains(key, ":bell") || strings.HasSuffix(key, "queue") {
			keys = append(keys, key)
		}
	}
	return keys
}

// TestRequestsInLine: what a hand-over costs, where nobody comes in between.
func TestRequestsInLine(t *testing.T) {
	_, node := fresh(t)
	c, requests := countedClient(t, node.Addr)
	s := store(t, c)
	want := func(what string, n int64, f func()) {
		t.Helper()
		before := requests.n.Load()
		if f(); requests.n.Load()-before != n {
			t.Errorf("%s makes %d requests, want %d", what, requests.n.Load()-before, n)
		}
	}
	a, b, d := waits(owner(), 0), waits(owner(), 0), waits(owner(), 0)
	mustAcquire(t, s, a) // which learns who the server is
	want("a release to nobody", 1, func() { mustRelease(t, s, a) })
	want("a take of a free name", 3, func() { mustAcquire(t, s, a) })
	want("to fall in", 3, func() { rank(t, s, b) })
	want("to fall in behind others", 2, func() { rank(t, s, d) })
	want("a release to one who waits", 2, func() { mustRelease(t, s, a) })
	b.Ticket, d.Ticket = 1, 2
	want("a take of a turn", 3, func() { mustAcquire(t, s, b) })
	mustRelease(t, s, b)
	mustAcquire(t, s, d)
	want("a release of the last in line", 2, func() { mustRelease(t, s, d) })
}

// TestWhoJoinsConflictsWithNoHolder: between what a holder read and what it
// writes, somebody falls in line. The holder is not held up, and who fell in is
// told its turn all the same.
func TestWhoJoinsConflictsWithNoHolder(t *testing.T) {
	s, node := fresh(t)
	c, requests := countedClient(t, node.Addr)
	holds := store(t, c)
	wakes := watch(t, s, "k")
	join := func(r quorum.Request) {
		once := false
		holds.OnRead(func() {
			if !once {
				once = true
				rank(t, s, r)
			}
		})
	}
	holder, first, second := waits(owner(), 1), waits(owner(), 2), waits(owner(), 3)
	holder.Floor = mustAcquire(t, holds, holder).Token + 5
	join(first)
	before := requests.n.Load()
	mustExtend(t, holds, holder)
	if n := requests.n.Load() - before; n != 3 {
		t.Errorf("an extension that raises its token made %d requests, want 3", n)
	}
	join(second)
	before = requests.n.Load()
	mustRelease(t, holds, holder)
	if n := requests.n.Load() - before; n != 2 {
		t.Errorf("a release made %d requests, want 2", n)
	}
	wantTurn(t, wakes, first)
	// A name that falls free under the first who falls in is taken at once: whoever
	// released it knew of nobody.
	holder, first = waits(owner(), 1), waits(owner(), 2)
	holder.Key, first.Key = "free", "free"
	mustAcquire(t, holds, holder)
	s.OnRead(func() { s.OnRead(nil); mustRelease(t, holds, holder) })
	mustAcquire(t, s, first)
}

// TestAReleaseIsOverBeforeTheQueueIsSeenTo: the line of who held is still there
// then, and nobody waits for it, neither after its release nor after its end.
func TestAReleaseIsOverBeforeTheQueueIsSeenTo(t *testing.T) {
	s, node := fresh(t)
	c := client(t, node.Addr)
	holds := store(t, c)
	before, first, second, third := waits(owner(), 1), waits(owner(), 2), waits(owner(), 3), waits(owner(), 4)
	mustAcquire(t, s, before)
	for _, r := range []quorum.Request{first, second, third} {
		rank(t, s, r)
	}
	mustRelease(t, s, before)
	mustAcquire(t, holds, first)
	reads := 0
	holds.OnRead(func() {
		if reads++; reads == 2 { // between its vote's end and what it does to the queue
			mustAcquire(t, s, second)
		}
	})
	mustRelease(t, holds, first)
	if reads != 2 {
		t.Errorf("a release of a waiter's writes %d times, want 2", reads)
	}
	if _, err := c.KV().DeleteTree("quorum/"+consulstore.NameFolder("k")+"vote/", nil); err != nil { // as when it ends
		t.Fatal(err)
	}
	mustAcquire(t, s, third)
}

// TestManyReadersAreToldTheirTurn: more than one transaction can ring for hear of
// it all the same, by those who take theirs.
func TestManyReadersAreToldTheirTurn(t *testing.T) {
	s, node := fresh(t)
	readers := store(t, client(t, node.Addr))
	holder := waits(owner(), 1)
	mustAcquire(t, s, holder)
	line := map[string]quorum.Request{}
	for i := range int64(consulstore.MaxTurns + 3) {
		r := waits(owner(), 2+i)
		r.Mode = quorum.ModeShared
		rank(t, readers, r)
		line[r.Owner.Digest()] = r
	}
	wakes := watch(t, readers, "k")
	mustRelease(t, s, holder)
	for len(line) > 0 {
		select {
		case w := <-wakes:
			if r, waits := line[w.Owner]; waits && w.Kind == quorum.WakeTurn {
				delete(line, w.Owner)
				mustAcquire(t, readers, r)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%d readers were never told", len(line))
		}
	}
}

// TestR13AQueueNeedsNoClock: clocks that differ by hours neither take a turn
// from anybody nor change the order of asking, and nothing stays in the end.
func TestR13AQueueNeedsNoClock(t *testing.T) {
	s, node := fresh(t)
	c := client(t, node.Addr)
	early, late := store(t, c), store(t, c)
	early.SetWall(func() time.Time { return time.Now().Add(-3 * time.Hour) })
	late.SetWall(func() time.Time { return time.Now().Add(3 * time.Hour) })
	holder := waits(owner(), 0)
	mustAcquire(t, s, holder)
	var line []quorum.Request
	last := int64(0)
	stores := []*consulstore.Store{late, s, early}
	for i, from := range stores {
		r := waits(owner(), 0)
		refused := rank(t, from, r)
		if refused.Rank != i || refused.Ticket <= last {
			t.Fatalf("waiter %d has rank %d and ticket %d, want a ticket above %d", i, refused.Rank, refused.Ticket, last)
		}
		r.Ticket = refused.Ticket
		last, line = refused.Ticket, append(line, r)
	}
	mustRelease(t, s, holder)
	rank(t, late, line[2]) // hours ahead, and no turn is over for it
	for i, from := range stores {
		mustAcquire(t, from, line[i])
		mustRelease(t, from, line[i])
	}
	if keys := left(t, c); len(keys) > 0 {
		t.Errorf("of a queue that all have left stay %q", keys)
	}
}

// TestWhoStandsBehindHearsItsBellAlone: seven hand-overs before it make a client
// ask for nothing. The third before last has it watch.
func TestWhoStandsBehindHearsItsBellAlone(t *testing.T) {
	s, node := fresh(t)
	c, requests := countedClient(t, node.Addr)
	far := store(t, c)
	var line []quorum.Request
	for i := range 9 {
		r := waits(owner(), int64(i+1))
		if line = append(line, r); i == 0 {
			mustAcquire(t, s, r)
		} else {
			rank(t, s, r)
		}
	}
	last := waits(owner(), 10)
	rank(t, far, last)
	wakes := watch(t, far, "k")
	before := requests.n.Load()
	pass := func(i int) {
		mustRelease(t, s, line[i])
		mustAcquire(t, s, line[i+1])
	}
	for i := range 7 {
		pass(i)
	}
	// Its bell, and the votes, are asked for again after five seconds.
	if n := requests.n.Load() - before; n > 3 {
		t.Errorf("seven hand-overs before it made it ask %d times", n)
	}
	pass(7)
	wantWake(t, wakes, quorum.WakeNext)
	mustRelease(t, s, line[8])
	wantTurn(t, wakes, last)
	mustAcquire(t, far, last)
}

// mortal lets a client send nothing more, as one that was killed.
type mortal struct {
	http.Transport
	dead atomic.Bool
}

func (m *mortal) RoundTrip(r *http.Request) (*http.Response, error) {
	if m.dead.Load() {
		return nil, errors.New("this client is dead")
	}
	return m.Transport.RoundTrip(r)
}

// TestF016DeadWaitersAreLeft: those who wait first die. Who stands behind them
// gets in, also where so many died that nobody is left to tell it.
func TestF016DeadWaitersAreLeft(t *testing.T) {
	t.Parallel()
	addr := testserver.Consul(t).Addr
	c := client(t, addr)
	began := locker(t, store(t, c), calm...)
	if err := began.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, dead := range map[string]int{"one": 1, "three at once": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holder := acceptance.Acquire(t, began, name)
			got := make(chan error, dead+1)
			var line []*mortal
			for i := range dead + 1 {
				m := &mortal{Transport: http.Transport{MaxIdleConnsPerHost: 4}}
				t.Cleanup(m.CloseIdleConnections)
				c, err := api.NewClient(&api.Config{Address: addr, HttpClient: &http.Client{Transport: m}})
				if err != nil {
					t.Fatal(err)
				}
				line = append(line, m)
				l := locker(t, store(t, c), calm...)
				go func() {
					_, err := l.Acquire(t.Context(), name, quorum.Wait(time.Minute))
					got <- err
				}()
				await(t, "it to fall in", func() bool { return queued(t, c, name) == i+1 })
			}
			for _, m := range line[:dead] {
				m.dead.Store(true)
				m.CloseIdleConnections()
			}
			free := time.Now()
			if err := holder.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-got; err != nil { // the dead wait for a minute
				t.Fatal(err)
			}
			t.Logf("in %v after the release", time.Since(free).Round(10*time.Millisecond))
		})
	}
}

// queued is how many stand in the line of a name.
func queued(t *testing.T, c *api.Client, name string) int {
	t.Helper()
	pair, _, err := c.KV().Get("quorum/"+consulstore.NameFolder(name)+"queue", nil)
	if err != nil || pair == nil {
		return 0
	}
	return strings.Count(string(pair.Value), "\n")
}

// TestCleanDropsAQueueOfTheDead: who waited for a name that nobody uses any more
// is dropped once a client has seen it stand there for as long as an entry lasts.
func TestCleanDropsAQueueOfTheDead(t *testing.T) {
	s, node := fresh(t)
	c := client(t, node.Addr)
	hand := &clock.Manual{}
	cleans := store(t, c)
	cleans.SetClock(hand)
	dead, behind := waits(owner(), 1), waits(owner(), 2)
	dead.Wait = quorum.WaitQueue
	_, err := s.Acquire(t.Context(), dead)
	wantOutcome(t, err, quorum.OutcomeReady)
	rank(t, s, behind)
	for _, n := range []int{2, 2, 0} { // a key and a bell
		if _, err := cleans.Clean(t.Context()); err != nil {
			t.Fatal(err)
		}
		if keys := left(t, c); len(keys) != n {
			t.Errorf("after %v there are %q, want %d", hand.Now(), keys, n)
		}
		hand.Advance(40 * time.Second)
	}
}

//go:build linux

package pgstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// waits asks for a place in the line. A turn and an entry last for a minute.
func waits(key string, o quorum.Owner, ticket int64) quorum.Request {
	r := ask(key, o)
	r.Wait, r.Ticket, r.Keep, r.Claim = quorum.WaitTake, ticket, time.Minute, time.Minute
	return r
}

// TestDeletionByHandKeepsTheLine: whoever frees a lock that is stuck frees it for
// those who wait.
func TestDeletionByHandKeepsTheLine(t *testing.T) {
	s, schema, p := fresh(t)
	g := mustAcquire(t, s, waits("k", owner(), 1))
	first, second := waits("k", owner(), 2), waits("k", owner(), 3)
	for _, r := range []quorum.Request{second, first} {
		_, err := s.Acquire(t.Context(), r)
		wantOutcome(t, err, quorum.OutcomeContended)
	}
	told, _ := watch(t, s, "k")
	run(t, p, fmt.Sprintf("delete from %s.lock where name = 'k'", schema))
	wantChanged(t, told, "a deletion")
	if w := <-told; w.Kind != quorum.WakeTurn || w.Owner != first.Owner.Digest() || w.Counter != g.Token {
		t.Errorf("then %+v, want the turn of %s with counter %d", w, first.Owner.Digest(), g.Token)
	}
	_, err := s.Acquire(t.Context(), second)
	wantOutcome(t, err, quorum.OutcomeContended)
	if next := mustAcquire(t, s, first); next.Token <= g.Token || next.Ticket != 2 {
		t.Errorf("grant %+v, want a token above %d and ticket 2", next, g.Token)
	}
}

// TestAQueueIsOfItsNameAlone: another name's waiters are told nothing, and the
// last that leaves a queue leaves the row as if there had been none.
func TestAQueueIsOfItsNameAlone(t *testing.T) {
	s, schema, p := fresh(t)
	other, _ := watch(t, s, "other")
	holder, waiter := waits("k", owner(), 1), waits("k", owner(), 2)
	mustAcquire(t, s, holder)
	_, err := s.Acquire(t.Context(), waiter)
	wantOutcome(t, err, quorum.OutcomeContended)
	mustRelease(t, s, holder)
	mustAcquire(t, s, waiter)
	mustRelease(t, s, waiter)
	if left := one[int](t, p, fmt.Sprintf("select count(*) from %s.lock where queue is not null or owners is not null", schema)); left != 0 {
		t.Errorf("%d rows with a queue or a vote left", left)
	}
	if len(other) != 0 {
		t.Errorf("who watches another name is told %+v", <-other)
	}
}

// TestAnOlderVersionsTableGetsAQueue: Setup adds what is missing and keeps what is
// there.
func TestAnOlderVersionsTableGetsAQueue(t *testing.T) {
	s, schema, p := fresh(t)
	r := waits("k", owner(), 1)
	g := mustAcquire(t, s, r)
	run(t, p, fmt.Sprintf("alter table %s.lock drop column queue", schema))
	run(t, p, fmt.Sprintf("drop function %s.version()", schema))
	if err := s.Setup(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again := mustAcquire(t, s, r); again.Token != g.Token {
		t.Errorf("token %d after Setup, %d before", again.Token, g.Token)
	}
}

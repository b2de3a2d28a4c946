package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

const ms = time.Millisecond

func at(d time.Duration) clock.Instant { return clock.Instant(d) }

func TestHealth(t *testing.T) {
	var h core.Health
	h.Sent(0, 1)
	for _, row := range []struct {
		after time.Duration
		sick  core.Set
	}{{200*ms - 1, 0}, {200 * ms, 0b010}} {
		if p := h.Pace(at(row.after), 3); p.Patience[0] != 200*ms || p.Patience[1] != 200*ms || p.Sick != row.sick {
			t.Errorf("%v after the very first call left, it advises %+v", row.after, p)
		}
	}
	h.Ended(0, 1, ms/10, true)
	for range 50 {
		h.Sent(0, 0)
		h.Ended(0, 0, 10*ms, true)
		h.Sent(0, 1)
		h.Ended(0, 1, ms/10, true)
	}
	p := h.Pace(0, 3)
	if got := p.Patience; got[0] < 10*ms || got[0] > 25*ms || got[1] != 20*ms || got[2] != 200*ms {
		t.Errorf("patience %v; want a little above 10ms, the least of 20ms, and that with one that never answered", got[:3])
	}
	// One that hangs is known before the call's limit, once it is overdue.
	h.Sent(at(time.Second), 1)
	for _, row := range []struct {
		after time.Duration
		sick  core.Set
	}{{20*ms - 1, 0}, {20 * ms, 0b010}} {
		if p := h.Pace(at(time.Second+row.after), 3); p.Sick != row.sick {
			t.Errorf("%v after an unanswered call left, sick are %b, want %b", row.after, p.Sick, row.sick)
		}
	}
	// A failure: sick, tried again after pauses that double.
	now := time.Duration(0)
	for _, pause := range []time.Duration{100 * ms, 200 * ms, 400 * ms} {
		h.Sent(at(now), 0)
		h.Ended(at(now), 0, time.Second, false)
		before, then := h.Pace(at(now+pause-1), 3), h.Pace(at(now+pause), 3)
		if !before.Sick.Has(0) || before.Probe.Has(0) || !then.Sick.Has(0) || !then.Probe.Has(0) {
			t.Errorf("pause of %v: before it ends %+v, then %+v", pause, before, then)
		}
		now += pause
	}
	if p := h.Pace(at(now), 3); !p.Probe.Has(0) {
		t.Error("a try that nobody made is not due any more")
	}
	h.Sent(at(now), 0)
	if p := h.Pace(at(now), 3); p.Probe.Has(0) {
		t.Error("one try is due twice")
	}
	h.Ended(at(now), 0, 10*ms, true)
	if p := h.Pace(at(now), 3); p.Sick.Has(0) {
		t.Error("a store that answers is still sick")
	}
}

// Where all have failed, or the one that there is, the trouble may be the client's
// own, or more load than anybody bears.
func TestFailedAreNoneWhereAllAre(t *testing.T) {
	for n, want := range map[int]core.Set{1: 0, 2: 0b01, 3: 0b011} {
		var h core.Health
		fail := func(i int) {
			h.Sent(0, i)
			h.Ended(0, i, time.Second, false)
		}
		for i := range max(n-1, 1) {
			fail(i)
		}
		if p := h.Pace(0, n); p.Failed != want {
			t.Errorf("of %d stores %b have failed, want %b", n, p.Failed, want)
		}
		fail(n - 1)
		if p := h.Pace(0, n); p.Failed != 0 || p.Sick.Len() != n {
			t.Errorf("all of %d: %+v", n, p)
		}
	}
}

// paced begins an attempt at n stores.
func paced(n int, order core.Order, p core.Pace) *core.Quorum {
	c := config(n, 0)
	c.Request.Order = order
	q := core.NewQuorum(c)
	q.Learn(p)
	q.Begin(0)
	return q
}

// sent lists what leaves, and answers for the stores that are said to.
func sent(q *core.Quorum, now clock.Instant, answers core.Set) (log []string) {
	for calls := q.Calls(); len(calls) > 0; calls = q.Calls() {
		for _, c := range calls {
			log = append(log, fmt.Sprintf("%d %v %v", c.Store, c.Req.Verb, c.Req.Kind))
			if answers.Has(c.Store) {
				q.Answer(now, c.Store, c.Seq, core.Answer{Outcome: core.Granted, Token: max(c.Req.Floor, 1)})
			}
		}
	}
	return log
}

func TestSlowStoreDoesNotHoldUpTheOrder(t *testing.T) {
	var p core.Pace
	p.Patience[0] = 30 * ms
	q := paced(3, core.InOrder, p)
	first := q.Calls()
	if len(first) != 1 || first[0].Store != 0 {
		t.Fatalf("asked first: %+v", first)
	}
	if q.Wake(at(30*ms - 1)); len(q.Calls()) != 0 {
		t.Fatal("the second was asked before the first was slow")
	}
	if q.Next() != at(30*ms) {
		t.Errorf("next at %v", time.Duration(q.Next()))
	}
	q.Wake(at(30 * ms))
	second := q.Calls()
	if len(second) != 1 || second[0].Store != 1 {
		t.Fatalf("asked when the first was slow: %+v", second)
	}
	// Its late answer still counts, and makes the quorum.
	q.Answer(at(31*ms), 1, second[0].Seq, core.Answer{Outcome: core.Granted, Token: 1})
	third := q.Calls()
	q.Answer(at(32*ms), 0, first[0].Seq, core.Answer{Outcome: core.Granted, Token: 1})
	if q.Phase() != core.Held || len(third) != 1 || third[0].Store != 2 {
		t.Errorf("phase %v after two grants; asked meanwhile %+v", q.Phase(), third)
	}
}

// Slow is not gone: an attempt is hopeless only at the calls' limits.
func TestSlowStoresAreWaitedForUntilTheirLimit(t *testing.T) {
	var p core.Pace
	p.Patience = [core.MaxMembers]time.Duration{20 * ms, 20 * ms, 20 * ms}
	q := paced(3, core.InOrder, p)
	now := clock.Instant(0)
	for q.Phase() == core.Asking {
		q.Calls()
		now = q.Next()
		q.Wake(now)
	}
	if want := at(20*ms + config(3, 0).CallLimit); q.Failure() != core.ByNoQuorum || now != want {
		t.Errorf("failed by %v after %v, want no quorum after %v", q.Failure(), time.Duration(now), time.Duration(want))
	}
}

func TestSickStoreIsLeftAlone(t *testing.T) {
	for _, row := range []struct {
		order   core.Order
		answers core.Set
		probe   core.Set
		want    []string
	}{
		{core.InOrder, 0b110, 0, []string{"1 acquire new", "2 acquire new"}},
		{core.FirstThenRest, 0b110, 0, []string{"1 acquire new", "2 acquire new"}},
		{core.AllAtOnce, 0b110, 0, []string{"1 acquire new", "2 acquire new"}},
		// A try in the background, after the lock is held.
		{core.InOrder, 0b110, 0b001, []string{"1 acquire new", "2 acquire new", "0 acquire repair"}},
	} {
		q := paced(3, row.order, core.Pace{Sick: 0b001, Probe: row.probe})
		if got := sent(q, 0, row.answers); !slices.Equal(got, row.want) || q.Phase() != core.Held {
			t.Errorf("%v: phase %v, sent %v, want %v", row.order, q.Phase(), got, row.want)
		}
	}
	// Where the others do not suffice, it is asked.
	q := paced(3, core.InOrder, core.Pace{Sick: 0b011})
	got := sent(q, 0, 0b111)
	if want := []string{"2 acquire new", "0 acquire new"}; !slices.Equal(got, want) || q.Phase() != core.Held {
		t.Errorf("two of three sick: phase %v, sent %v, want %v", q.Phase(), got, want)
	}
}

func TestReleaseWaitsForNoSlowStoreWhenEnoughAnswered(t *testing.T) {
	for _, row := range []struct {
		name    string
		answers core.Set
		heard   time.Duration // when
	}{
		{"all answer", 0b111, 0},
		{"one is slow", 0b011, 30 * ms},
		{"two are slow", 0b001, config(3, 0).CallLimit},
	} {
		var p core.Pace
		p.Patience = [core.MaxMembers]time.Duration{30 * ms, 30 * ms, 30 * ms}
		q := paced(3, core.InOrder, p)
		sent(q, 0, 0b111)
		q.Release(0)
		sent(q, 0, row.answers)
		now := clock.Instant(0)
		for heard := false; ; q.Wake(now) {
			if _, heard, _ = q.Releases(); heard {
				break
			}
			now = q.Next()
		}
		if now != at(row.heard) {
			t.Errorf("%s: Release returns after %v, want %v", row.name, time.Duration(now), row.heard)
		}
	}
}

// In an outage an attempt counts on those that failed lately only briefly, and on
// one that is slow until the call's limit.
func TestFailedStoresAreCountedOnBriefly(t *testing.T) {
	limit := config(3, 0).CallLimit
	for _, row := range []struct {
		failed core.Set
		usual  time.Duration
		want   time.Duration
	}{
		{0b110, 20 * ms, 220 * ms}, // c is asked when b is slow
		{0b110, 30 * ms, 330 * ms},
		{0b110, limit / 5, limit + limit/5},
		{0b100, 20 * ms, limit},
	} {
		p := core.Pace{Sick: 0b110, Failed: row.failed}
		p.Patience = [core.MaxMembers]time.Duration{row.usual, row.usual, row.usual}
		q := paced(3, core.AllAtOnce, p)
		now := clock.Instant(0)
		for q.Phase() == core.Asking {
			sent(q, now, 0b001)
			now = q.Next()
			q.Wake(now)
		}
		if q.Failure() != core.ByNoQuorum || now != at(row.want) {
			t.Errorf("%03b failed, usually %v: %v after %v, want no quorum after %v", row.failed, row.usual, q.Failure(), time.Duration(now), row.want)
		}
	}
}

// A store that answers only after the lease was won and given back is waited for
// by nobody: the lease asks to be woken no more.
func TestAnAnswerAfterTheEndIsNotWaitedFor(t *testing.T) {
	q := paced(3, core.AllAtOnce, core.Pace{Patience: [core.MaxMembers]time.Duration{20 * ms, 20 * ms, 20 * ms}})
	calls := q.Calls()
	for _, c := range calls[:2] {
		q.Answer(at(ms), c.Store, c.Seq, core.Answer{Outcome: core.Granted, Token: 7})
	}
	if q.Phase() != core.Held || q.Next() > at(time.Hour) {
		t.Fatalf("phase %v, next %v; want held, and the end of the call in flight", q.Phase(), q.Next())
	}
	q.Release(at(2 * ms))
	q.Answer(at(3*ms), calls[2].Store, calls[2].Seq, core.Answer{Outcome: core.Granted, Token: 7})
	for releases := q.Calls(); len(releases) > 0; releases = q.Calls() {
		for _, c := range releases {
			q.Answer(at(4*ms), c.Store, c.Seq, core.Answer{Outcome: core.Granted})
		}
	}
	if next := q.Next(); next != core.Never {
		t.Errorf("given back everywhere, it is to be woken at %v", next)
	}
}

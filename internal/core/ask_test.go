package core_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/core"
)

// TestR39CallLog puts every pattern of five answers to an attempt, asked in
// order, and compares all that it sends with a list written down otherwise.
func TestR39CallLog(t *testing.T) {
	for pattern := range 243 {
		answers := [5]core.Outcome{}
		for i, p := 0, pattern; i < 5; i, p = i+1, p/3 {
			answers[i] = [...]core.Outcome{core.Granted, core.Contended, core.Unknown}[p%3]
		}
		// The counters differ, so that some patterns need a write-back.
		next := [5]int64{3, 1, 4, 1, 5}
		want, held := expected(answers, next)
		var got []string
		q := core.NewQuorum(config(5, 0))
		q.Begin(0)
		for calls := q.Calls(); len(calls) > 0; calls = q.Calls() {
			for _, c := range calls {
				got = append(got, entry(c))
				a := core.Answer{Outcome: core.Granted, Token: c.Req.Floor}
				if c.Req.Verb == core.Acquire && c.Req.Kind == core.New {
					a = core.Answer{Outcome: answers[c.Store], Token: max(next[c.Store], c.Req.Floor), Clean: true}
				}
				q.Answer(0, c.Store, c.Seq, a)
			}
		}
		if !slices.Equal(got, want) || (q.Phase() == core.Held) != held {
			t.Errorf("answers %v:\n got %v, held %v\nwant %v, held %v", answers, got, q.Phase() == core.Held, want, held)
		}
	}
}

func entry(c core.Call) string {
	switch {
	case c.Req.Verb == core.Release && c.Req.Entomb:
		return fmt.Sprintf("%d entomb", c.Store)
	case c.Req.Verb == core.Release:
		return fmt.Sprintf("%d release", c.Store)
	case c.Req.Kind == core.Repair:
		return fmt.Sprintf("%d repair %d", c.Store, c.Req.Floor)
	}
	return fmt.Sprintf("%d %v %d", c.Store, c.Req.Verb, c.Req.Floor)
}

// expected is the oracle: the page's first phase in a dozen lines.
func expected(answers [5]core.Outcome, next [5]int64) (log []string, held bool) {
	var token int64
	votes := map[int]int64{}
	asked := 0
	for ; asked < 5 && len(votes) < 3 && len(votes)+5-asked >= 3; asked++ {
		log = append(log, fmt.Sprintf("%d acquire %d", asked, token))
		if answers[asked] == core.Granted {
			token = max(token, next[asked])
			votes[asked] = token
		}
	}
	if len(votes) < 3 {
		for i := range asked {
			switch answers[i] {
			case core.Granted:
				log = append(log, fmt.Sprintf("%d release", i))
			case core.Unknown:
				log = append(log, fmt.Sprintf("%d entomb", i))
			}
		}
		return log, false
	}
	for i := range asked {
		if lagging, ok := votes[i]; ok && lagging < token {
			log = append(log, fmt.Sprintf("%d extend %d", i, token))
		}
	}
	for i := asked; i < 5; i++ {
		log = append(log, fmt.Sprintf("%d repair %d", i, token))
	}
	return log, true
}

// Every store hangs to its limit: each gets its slice or what is left, and the
// sum is the deadline.
func TestR40OneDeadline(t *testing.T) {
	for _, slice := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 30 * time.Second} {
		c := config(5, 0)
		c.CallLimit = slice
		q := core.NewQuorum(c)
		now := clock.Instant(0)
		deadline := now.Add(leaseTTL)
		q.Begin(now)
		for q.Phase() == core.Asking {
			for _, call := range q.Calls() {
				if want := min(slice, deadline.Sub(now)); call.Req.Limit != want {
					t.Errorf("slice %v: store %d is asked at %v with limit %v, want %v", slice, call.Store, time.Duration(now), call.Req.Limit, want)
				}
			}
			now = q.Next()
			q.Wake(now)
		}
		// Three of five silent are enough to know.
		if want := min(deadline, clock.Instant(3*slice)); now != want {
			t.Errorf("slice %v: decided at %v, want %v", slice, time.Duration(now), time.Duration(want))
		}
	}
}

// A lease is never reported with more than the deadline leaves.
func TestR40NoMoreThanTheDeadlineLeaves(t *testing.T) {
	for ms := int64(0); ms < 12_000; ms += 7 {
		answered := clock.Instant(ms * int64(time.Millisecond))
		c := config(1, 0)
		c.CallLimit = time.Minute
		q := core.NewQuorum(c)
		q.Begin(0)
		call := q.Calls()[0]
		q.Answer(answered, 0, call.Seq, core.Answer{Outcome: core.Granted, Token: 1})
		const valid = leaseTTL - leaseTTL/100 - 2*time.Millisecond
		switch held := q.Phase() == core.Held; {
		case held != (time.Duration(answered) < valid):
			t.Fatalf("answered after %v: held %v", time.Duration(answered), held)
		case held && q.Until() != clock.Instant(valid):
			t.Fatalf("answered after %v: valid until %v, want %v", time.Duration(answered), time.Duration(q.Until()), valid)
		case !held && q.Failure() != core.ByExpired:
			t.Fatalf("answered after %v: failure %v, want expired", time.Duration(answered), q.Failure())
		}
	}
}

package model_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// machine drives one store at random and keeps, beside it, what must hold for
// ever: what was given once cannot be given lower again.
type machine struct {
	store  *model.Store
	now    model.Time
	runs   int
	given  map[string]int64 // the highest token anybody got for a name
	writer map[string]int64 // the highest token a writer got
	record model.Record
}

func newMachine() *machine {
	return &machine{
		store:  model.NewStore("a", "server", "run", epoch),
		now:    epoch,
		given:  map[string]int64{},
		writer: map[string]int64{},
	}
}

var (
	keys   = rapid.SampledFrom([]string{"k", "l"})
	jumps  = rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 10 * time.Second, maxTTL, core.StepPeriod, 11 * time.Minute, time.Hour})
	back   = rapid.SampledFrom([]time.Duration{time.Microsecond, time.Minute, 11 * time.Minute, time.Hour})
	ttls   = rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, 10 * time.Second, maxTTL})
	owners = rapid.Custom(func(t *rapid.T) core.Owner {
		return core.Owner{ID: core.ID{rapid.ByteRange(1, 3).Draw(t, "id")}, Attempt: rapid.Uint32Range(1, 3).Draw(t, "attempt")}
	})
)

func (m *machine) draw(t *rapid.T, verb core.Verb) core.Request {
	r := core.Request{Verb: verb, Set: set, MaxTTL: maxTTL, Limit: time.Second, Label: "label"}
	r.Key, r.Owner, r.TTL = keys.Draw(t, "key"), owners.Draw(t, "owner"), ttls.Draw(t, "ttl")
	r.Mode = rapid.SampledFrom([]core.Mode{core.Exclusive, core.Shared}).Draw(t, "mode")
	// Floors lie around what was given, and now and then as far as is allowed.
	near := max(m.given[r.Key], start) + rapid.Int64Range(-3, 3).Draw(t, "floor")
	r.Floor = rapid.SampledFrom([]int64{0, near, near, near, near + core.FloorReach/2, near + core.FloorReach}).Draw(t, "reach")
	if verb == core.Acquire {
		r.Wait = rapid.SampledFrom([]core.WaitKind{core.WaitNone, core.WaitTake, core.WaitQueue}).Draw(t, "wait")
		r.Ticket = rapid.Int64Range(0, 4).Draw(t, "ticket")
		r.Keep, r.Claim = min(ttls.Draw(t, "keep"), core.KeepMax), time.Microsecond
	}
	return r
}

// line checks the queue: in order, nobody twice, none of them beside a vote of
// its own, and turns only at the front.
func (m *machine) line(t *rapid.T, key string) {
	n := m.store.Peek(key)
	live := n.Live(&m.store.Record, maxTTL, m.now)
	for i, e := range n.Queue {
		if find(live, e.Owner.ID) != nil {
			t.Fatalf("%s holds and waits", e.Owner)
		}
		for _, o := range n.Queue[:i] {
			if o.Ticket > e.Ticket || o.Owner.ID == e.Owner.ID {
				t.Fatalf("a queue in disorder: %+v", n.Queue)
			}
			if e.Turn != 0 && (o.Mode == core.Exclusive || e.Mode == core.Exclusive) && o.Turn >= m.now {
				t.Fatalf("a turn behind another's: %+v", n.Queue)
			}
		}
	}
}

// apply sends a request twice, to the store and to a clone, and checks what
// must hold for every answer.
func (m *machine) apply(t *rapid.T, req core.Request) {
	pre := m.store.Peek(req.Key)
	live := slices.Clone(pre.Live(&m.store.Record, maxTTL, m.now))
	standing, twin := m.store.Record.Standing, m.store.Clone()
	a := m.store.Apply(req, m.now)
	if b := twin.Apply(req, m.now); a != b || !bytes.Equal(encode(m.store), encode(twin)) {
		t.Fatalf("one state, one request, two outcomes: %+v and %+v", a, b)
	}
	post := m.store.Peek(req.Key)
	after := post.Live(&m.store.Record, maxTTL, m.now)
	own := find(live, req.Owner.ID)
	if req.Kind == core.New && req.Verb == core.Acquire && a.Outcome == core.Granted && (own == nil || own.Owner != req.Owner) {
		if req.Wait == core.WaitQueue {
			t.Fatalf("queue was granted %d", a.Token)
		}
		for _, e := range pre.Queue {
			older := req.Wait == core.WaitNone || e.Ticket < req.Ticket && (e.Mode == core.Exclusive || req.Mode == core.Exclusive)
			if e.Owner.ID != req.Owner.ID && older && e.Turn > m.now {
				t.Fatalf("%s passed %+v", req.Owner, e)
			}
		}
	}
	switch {
	case a.Outcome == core.Undelivered:
		if !slices.Equal(live, after) {
			t.Fatalf("a request out of range (%s) changed %+v to %+v", a.Reason, live, after)
		}
	case a.Outcome != core.Granted:
		if now := find(after, req.Owner.ID); a.Clean && now != nil {
			t.Fatalf("the refusal is clean beside %+v", now)
		}
	case req.Verb == core.Extend && (own == nil || own.Owner != req.Owner):
		t.Fatalf("extended %s out of %+v", req.Owner, live)
	case req.Verb == core.Acquire:
		m.granted(t, req, a, own, &pre)
		if standing != model.Voting && req.Kind != core.Repair && (req.Kind != core.Convert || req.Mode != core.Shared) {
			t.Fatalf("a vote was given while the store was %d", standing)
		}
	}
	if a.Outcome == core.Granted && req.Verb != core.Release {
		m.keep(t, req, a, own, after)
	}
}

// granted checks a grant of Acquire against the tokens of the past.
func (m *machine) granted(t *rapid.T, req core.Request, a core.Answer, own *model.Vote, pre *model.Name) {
	if own != nil && own.Owner.Attempt > req.Owner.Attempt {
		t.Fatalf("attempt %d was granted over %d", req.Owner.Attempt, own.Owner.Attempt)
	}
	for _, tomb := range pre.Tombs {
		if tomb.ID == req.Owner.ID && tomb.Attempt >= req.Owner.Attempt && tomb.Until > m.now {
			t.Fatalf("attempt %d was granted out of its tomb", req.Owner.Attempt)
		}
	}
	demotion := req.Kind == core.Convert && req.Mode == core.Shared
	switch same := own != nil && own.Owner == req.Owner; {
	case req.Kind == core.Repair:
		if a.Token != req.Floor {
			t.Fatalf("a repair gave %d, want its token %d", a.Token, req.Floor)
		}
	case same:
		if a.Token != own.Token || a.Mode != own.Mode {
			t.Fatalf("the same attempt got %d, %s; had %d, %s", a.Token, a.Mode, own.Token, own.Mode)
		}
	case demotion:
		if want := max(own.Token, req.Floor); a.Token != want {
			t.Fatalf("a demotion gave %d, want %d", a.Token, want)
		}
	case a.Mode == core.Exclusive && a.Token <= m.given[req.Key]:
		t.Fatalf("a writer got %d after %d was given", a.Token, m.given[req.Key])
	case a.Mode == core.Shared && (a.Token < m.given[req.Key] || a.Token <= m.writer[req.Key]):
		t.Fatalf("a reader got %d after %d, a writer's %d", a.Token, m.given[req.Key], m.writer[req.Key])
	}
}

// keep notes what was given, and checks that the vote lasts long enough.
func (m *machine) keep(t *rapid.T, req core.Request, a core.Answer, own *model.Vote, after []model.Vote) {
	now := find(after, req.Owner.ID)
	if now == nil || now.Owner != req.Owner || now.Token != a.Token || now.Until < m.now.Add(req.TTL) || a.TTL != now.Until.Sub(m.now) {
		t.Fatalf("granted %+v and kept %+v", a, now)
	}
	if own != nil && now.Until < own.Until && !req.Wait.Queued() { // who stood in line gave it up first
		t.Fatalf("the vote ends at %d, before %d", now.Until, own.Until)
	}
	if a.Token < 1 || a.Token >= core.TokenLimit {
		t.Fatalf("token %d", a.Token)
	}
	m.given[req.Key] = max(m.given[req.Key], a.Token)
	if a.Mode == core.Exclusive {
		m.writer[req.Key] = max(m.writer[req.Key], a.Token)
	}
}

// check is what must hold at rest.
func (m *machine) check(t *rapid.T) {
	rec := m.store.Record
	if rec.Step < m.record.Step || rec.Base < m.record.Base {
		t.Fatalf("the record went back from %+v to %+v", m.record, rec)
	}
	m.record = rec
	for _, key := range []string{"k", "l"} {
		n := m.store.Peek(key)
		fresh := rec.Step << core.StepBits
		switch {
		case n.Known && n.Counter < m.given[key], !n.Known && fresh <= m.given[key]:
			t.Fatalf("%q starts from %d (known: %v) or %d, and %d was given", key, n.Counter, n.Known, fresh, m.given[key])
		case n.Known && n.Counter >= fresh+1<<core.StepBits:
			t.Fatalf("the counter %d outgrew step %d", n.Counter, rec.Step)
		}
		m.line(t, key)
		live := n.Live(&rec, maxTTL, m.now)
		for _, v := range live {
			if v.Mode == core.Exclusive && len(live) > 1 {
				t.Fatalf("a writer beside others: %+v", live)
			}
		}
	}
}

func TestStoreKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMachine()
		t.Repeat(map[string]func(*rapid.T){
			"": m.check,
			"acquire": func(t *rapid.T) {
				r := m.draw(t, core.Acquire)
				r.Kind = rapid.SampledFrom([]core.Kind{core.New, core.New, core.New, core.Repair, core.Convert, core.Force}).Draw(t, "kind")
				m.apply(t, r)
			},
			"extend": func(t *rapid.T) { m.apply(t, m.draw(t, core.Extend)) },
			"release": func(t *rapid.T) {
				r := m.draw(t, core.Release)
				r.Entomb = rapid.Bool().Draw(t, "entomb")
				m.apply(t, r)
			},
			"time passes": func(t *rapid.T) { m.now = m.now.Add(jumps.Draw(t, "by")) },
			"time goes back": func(t *rapid.T) {
				m.now = m.now.Add(-back.Draw(t, "by"))
			},
			"sweep": func(*rapid.T) { m.store.Sweep(m.now) },
			"restart": func(t *rapid.T) {
				m.runs++
				m.store.Restart(m.store, "run"+strings.Repeat("'", m.runs))
			},
			"leave": func(t *rapid.T) {
				q := m.store.Apply(readStep(), m.now).Step.Quarantine
				o := core.RaiseOrder{Quarantine: q, Step: step, Alone: rapid.Bool().Draw(t, "alone"), Fresh: rapid.Bool().Draw(t, "fresh")}
				m.store.Apply(raise(o), m.now)
			},
		})
	})
}

func find(votes []model.Vote, id core.ID) *model.Vote {
	for i := range votes {
		if votes[i].Owner.ID == id {
			return &votes[i]
		}
	}
	return nil
}

func encode(s *model.Store) []byte { return must(s.AppendBinary(nil)) }

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

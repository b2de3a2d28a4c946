package model_test

import (
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

const (
	ttl    = 10 * time.Second
	maxTTL = time.Minute
	set    = 0xfeed
	key    = "k"

	// epoch lies at the start of a step, so that tests know when it moves.
	epoch = model.Time(6_000_000 * int64(core.StepPeriod/time.Microsecond))
	step  = int64(6_000_000)
	start = step << core.StepBits
)

// node is a store and its clock.
type node struct {
	*testing.T
	store *model.Store
	now   model.Time
}

func newNode(t *testing.T) *node {
	return &node{t, model.NewStore("a", "server", "run1", epoch), epoch}
}

func (n *node) pass(d time.Duration) { n.now = n.now.Add(d) }

func (n *node) do(req core.Request) core.Answer { return n.store.Apply(req, n.now) }

// granted demands a grant with a token relative to where fresh names start.
func (n *node) granted(req core.Request, token int64) core.Answer {
	n.Helper()
	a := n.do(req)
	if a.Outcome != core.Granted {
		n.Fatalf("%s = %s %q, want granted", show(req), a.Outcome, a.Reason)
	}
	if a.Token != start+token {
		n.Fatalf("%s gave token start%+d, want start%+d", show(req), a.Token-start, token)
	}
	if a.TTL < req.TTL {
		n.Fatalf("%s gave %v, want at least %v", show(req), a.TTL, req.TTL)
	}
	return a
}

// refused demands an outcome that is not granted, and its word on whether
// anything of the owner is there.
func (n *node) refused(req core.Request, want core.Outcome, clean bool) core.Answer {
	n.Helper()
	a := n.do(req)
	if a.Outcome != want || a.Clean != clean {
		n.Fatalf("%s = %s %q, clean %v; want %s, clean %v", show(req), a.Outcome, a.Reason, a.Clean, want, clean)
	}
	return a
}

// invalid demands a refusal that is a mistake of the request.
func (n *node) invalid(req core.Request) {
	n.Helper()
	if a := n.do(req); a.Outcome != core.Undelivered || a.Reason == "" {
		n.Fatalf("%s = %s %q, want undelivered with a reason", show(req), a.Outcome, a.Reason)
	}
}

func (n *node) released(req core.Request) core.Answer {
	n.Helper()
	a := n.do(req)
	if a.Outcome != core.Granted {
		n.Fatalf("%s = %s, want granted", show(req), a.Outcome)
	}
	return a
}

// votes demands how many votes the name has.
func (n *node) votes(want int) []model.Vote {
	n.Helper()
	name := n.store.Peek(key)
	live := name.Live(&n.store.Record, maxTTL, n.now)
	if len(live) != want {
		n.Fatalf("%d votes, want %d: %+v", len(live), want, live)
	}
	return live
}

func show(r core.Request) string {
	return r.Verb.String() + " " + r.Kind.String() + " " + r.Mode.String() + " by " + r.Owner.String()
}

type mod func(*core.Request)

func request(verb core.Verb, id byte, attempt uint32, mods ...mod) core.Request {
	r := core.Request{
		Verb: verb, Key: key, TTL: ttl, MaxTTL: maxTTL, Set: set, Limit: time.Second,
		Owner: core.Owner{ID: core.ID{id}, Attempt: attempt},
		Label: "label " + string('A'+rune(id)-1),
	}
	for _, m := range mods {
		m(&r)
	}
	return r
}

func acquire(id byte, attempt uint32, mods ...mod) core.Request {
	return request(core.Acquire, id, attempt, mods...)
}

func extend(id byte, attempt uint32, mods ...mod) core.Request {
	return request(core.Extend, id, attempt, mods...)
}

func release(id byte, attempt uint32, mods ...mod) core.Request {
	return request(core.Release, id, attempt, mods...)
}

func raise(o core.RaiseOrder) core.Request {
	return core.Request{Verb: core.Raise, MaxTTL: maxTTL, Set: set, Raise: o}
}

func shared(r *core.Request)  { r.Mode = core.Shared }
func force(r *core.Request)   { r.Kind = core.Force }
func convert(r *core.Request) { r.Kind = core.Convert }
func entomb(r *core.Request)  { r.Entomb = true }

// floor is relative to where fresh names start.
func floor(token int64) mod { return func(r *core.Request) { r.Floor = start + token } }

func repair(token int64) mod {
	return func(r *core.Request) { r.Kind, r.Floor = core.Repair, start+token }
}

func lasting(d time.Duration) mod { return func(r *core.Request) { r.TTL = d } }

// cases runs each on a store of its own.
func cases(t *testing.T, all map[string]func(*node)) {
	for name, run := range all {
		t.Run(name, func(t *testing.T) { run(newNode(t)) })
	}
}

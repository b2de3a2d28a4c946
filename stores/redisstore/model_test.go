package redisstore_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// TestModelRedis and TestModelMiniredis put random requests to the scripts and
// to the model, at exactly the same readings of the clock, and compare the
// answers, who holds, and the record. QUORUM_SEED replays a run.
func TestModelRedis(t *testing.T) {
	node, clock := stoppedRedis(t)
	c := client(t, node.Addr)
	run := newRun(t, c, clock, true)
	run.restart = func() string { return "" }
	run.play(3000)
}

func TestModelMiniredis(t *testing.T) {
	m, clock := stoppedMiniredis(t)
	run := newRun(t, client(t, m.Addr()), clock, false)
	life := 1
	run.restart = func() string {
		life++
		return fmt.Sprintf("life-%d", life)
	}
	run.play(2000)
}

const modelMaxTTL = 30*time.Second + 5*time.Millisecond // 5 ms, so that no key expires at the very moment of a request

type modelRun struct {
	t       *testing.T
	client  *redis.Client
	store   *redisstore.Store
	clock   *serverClock
	back    bool // the clock may go back
	restart func() string
	rand    *rand.Rand
	seed    uint64

	rec    model.Record
	names  map[string]*model.Name
	keep   map[string]time.Time // until when Redis keeps the counter
	owners []quorum.Owner
	last   string // the quarantine before
	log    []string
	ends   map[string]int // how often each outcome was seen
}

func newRun(t *testing.T, c *redis.Client, clock *serverClock, back bool) *modelRun {
	r := &modelRun{t: t, client: c, clock: clock, back: back, seed: seed(t), ends: map[string]int{}}
	r.rand = rand.New(rand.NewPCG(r.seed, 0))
	if back {
		r.rec.Run = runID(t, c)
		r.store = store(t, c)
	} else {
		r.rec.Run = "life-1"
		r.store = store(t, c, redisstore.RunID("life-1"))
	}
	r.empty()
	return r
}

// empty is what FLUSHALL leaves.
func (r *modelRun) empty() {
	r.rec = model.Record{Run: r.rec.Run}
	r.names, r.keep = map[string]*model.Name{}, map[string]time.Time{}
	r.strangers()
}

// strangers draws new owners. A tombstone's key keeps its end when the clock
// goes back, and so outlives the model's; nobody may ask for it again.
func (r *modelRun) strangers() {
	r.owners = r.owners[:0]
	for range 4 {
		var o quorum.Owner
		for i := range o.ID {
			o.ID[i] = byte(r.rand.Uint32())
		}
		r.owners = append(r.owners, o)
	}
}

func (r *modelRun) now() model.Time { return model.Time(r.clock.now.UnixMicro()) }

func (r *modelRun) play(n int) {
	for range n {
		r.time()
		switch r.rand.IntN(40) {
		case 0:
			r.note("SCRIPT FLUSH")
			r.client.ScriptFlush(r.t.Context())
		case 1:
			if r.rand.IntN(8) == 0 {
				r.note("FLUSHALL")
				r.client.FlushAll(r.t.Context())
				r.empty()
			}
		case 2:
			if life := r.restart(); life != "" && r.rand.IntN(4) == 0 {
				r.note("restart as %s", life)
				r.rec.Restart(life)
				r.store = store(r.t, r.client, redisstore.RunID(life))
			}
		case 3, 4, 5, 6:
			r.record()
		default:
			r.name()
		}
		r.compareRecord()
	}
	for _, outcome := range []string{"granted", "contended", "not held", "quarantined", "mismatch", "undelivered"} {
		if r.ends[outcome] == 0 {
			r.t.Errorf("no request was ever %s: %v", outcome, r.ends)
		}
	}
	r.t.Logf("outcomes: %v", r.ends)
}

// time lets some time pass, mostly less than a vote's.
func (r *modelRun) time() {
	var d time.Duration
	switch r.rand.IntN(24) {
	default:
		d = time.Duration(r.rand.IntN(40)) * 10 * time.Millisecond
	case 0:
		d = time.Duration(r.rand.IntN(4000)) * 10 * time.Millisecond
	case 1:
		d = time.Duration(r.rand.IntN(800)) * time.Second
	case 2:
		if r.back && r.rand.IntN(3) == 0 {
			d = -time.Duration(r.rand.IntN(400)) * time.Second
			r.strangers()
			r.expire()
		}
	}
	if d != 0 {
		r.clock.advance(d)
		r.note("%v pass", d)
	}
}

// expire makes the server drop the names that it keeps no longer: those that
// are met drop at once, the rest at some time that would differ between runs.
func (r *modelRun) expire() {
	for key, name := range r.names {
		if name.Known && r.clock.now.After(r.keep[key]) {
			*name = model.Name{Tombs: name.Tombs, Forced: name.Forced}
		}
		for _, part := range []string{"vote", "count", "read", "ends"} {
			r.client.Exists(r.t.Context(), "{quorum}:"+part+":"+key)
		}
	}
}

func (r *modelRun) request() quorum.Request {
	q := quorum.Request{MaxTTL: modelMaxTTL, Limit: 5 * time.Second, Set: 0xfeed}
	if r.rand.IntN(50) == 0 && r.rec.Serving > 0 {
		q.Set = 0xbad
	}
	return q
}

// record puts ReadStep or Raise.
func (r *modelRun) record() {
	q := r.request()
	read, err := r.store.ReadStep(r.t.Context(), q)
	its := model.Apply(&r.rec, nil, coreRequest(core.ReadStep, q), r.now())
	r.outcome("ReadStep", err, its)
	want := quorum.Step{
		Step: its.Step.Step, Base: its.Step.Base, Quarantine: its.Step.Quarantine, Over: its.Step.Over,
		Left: its.Left, Server: read.Server,
	}
	if err == nil && read != want {
		r.differ("ReadStep = %+v, the model has %+v", read, want)
	}
	if r.rand.IntN(2) == 0 || q.Set == 0xbad {
		return
	}
	o := quorum.Raise{Quarantine: read.Quarantine, Step: max(read.Step+int64(r.rand.IntN(3))-1, 0)}
	if r.rand.IntN(5) == 0 {
		o.Quarantine = r.last
	}
	if read.Quarantine != "" {
		r.last = read.Quarantine
	}
	switch r.rand.IntN(8) {
	case 0:
		o.Forgotten = true
	case 1, 2:
		o.Fresh = true
	case 3, 4:
		o.Alone = true
	}
	err = r.store.Raise(r.t.Context(), q, o)
	req := coreRequest(core.Raise, q)
	req.Raise = core.RaiseOrder(o)
	r.note("Raise %+v", o)
	r.outcome("Raise", err, model.Apply(&r.rec, nil, req, r.now()))
}

// name puts one of the three verbs.
func (r *modelRun) name() {
	q := r.request()
	q.Key = fmt.Sprintf("name-%d", r.rand.IntN(3))
	who := r.rand.IntN(len(r.owners))
	q.Owner = r.owners[who]
	q.Owner.Attempt = uint32(1 + r.rand.IntN(4))
	q.Label = fmt.Sprintf("label of %d", who)
	q.Mode = quorum.Mode(r.rand.IntN(2))
	q.TTL = time.Duration(1+r.rand.IntN(300)) * 100 * time.Millisecond
	name := r.names[q.Key]
	if name == nil {
		name = &model.Name{}
		r.names[q.Key] = name
	}
	if name.Known && r.clock.now.After(r.keep[q.Key]) {
		*name = model.Name{Tombs: name.Tombs, Forced: name.Forced}
	}
	name.Keep = 1 << 60 // Redis keeps a counter longer than the model: see one
	if r.rand.IntN(3) == 0 {
		q.Floor = max(name.Counter+int64(r.rand.IntN(6))-2, 0)
	}
	switch r.rand.IntN(60) {
	case 0:
		q.Floor = 1<<53 - 1
	case 1:
		q.Floor = (r.rec.Step + int64(r.rand.IntN(3))) << 26
	}
	verb := core.Acquire
	switch r.rand.IntN(8) {
	case 0, 1:
		verb = core.Extend
	case 2:
		verb = core.Release
		q.Entomb = r.rand.IntN(3) == 0
	default:
		q.Kind = []quorum.Kind{quorum.KindNew, quorum.KindNew, quorum.KindNew, quorum.KindRepair, quorum.KindConvert, quorum.KindForce}[r.rand.IntN(6)]
		if q.Kind == quorum.KindForce && r.rand.IntN(3) != 0 {
			q.Kind = quorum.KindNew
		}
		if q.Kind == quorum.KindRepair && q.Floor == 0 {
			q.Floor = max(name.Counter+int64(r.rand.IntN(4))-1, 1)
		}
	}
	r.note("%v of %s by %d/%d, %v, %v, TTL %v, floor %d, entomb %v, set %v",
		verb, q.Key, who, q.Owner.Attempt, q.Kind, q.Mode, q.TTL, q.Floor, q.Entomb, q.Set)
	r.one(verb, q, name)
}

func (r *modelRun) one(verb core.Verb, q quorum.Request, name *model.Name) {
	rec := &r.rec
	if verb == core.Release { // the script reads no record: it moves no step and brings no end near
		rec = &model.Record{}
	}
	its := model.Apply(rec, name, coreRequest(verb, q), r.now())
	var g quorum.Grant
	var err error
	switch verb {
	case core.Acquire:
		g, err = r.store.Acquire(r.t.Context(), q)
	case core.Extend:
		g, err = r.store.Extend(r.t.Context(), q)
	default:
		err = r.store.Release(r.t.Context(), q)
	}
	r.outcome(verb.String(), err, its)
	if its.Outcome == core.Granted && verb != core.Release {
		r.keep[q.Key] = r.clock.now.Add(modelMaxTTL + core.CounterRest + time.Second)
		want := quorum.Grant{
			Token: its.Token, TTL: g.TTL, Mode: quorum.Mode(its.Mode), Readers: its.Readers,
			Previous: quorum.Previous(its.Previous), Server: g.Server,
		}
		if fmt.Sprint(g) != fmt.Sprint(want) {
			r.differ("granted %+v, the model %+v", g, want)
		}
	}
	r.compareHolders(q, name)
}

// outcome compares how two answers count and what a refusal says.
func (r *modelRun) outcome(what string, err error, its core.Answer) {
	got := quorum.OutcomeOf(err)
	r.ends[got.String()]++
	if got != quorum.Outcome(its.Outcome) {
		r.differ("%s came to %v (%v), the model to %v (%s)", what, got, err, its.Outcome, its.Reason)
	}
	refused := (*quorum.RefusedError)(nil)
	if !errors.As(err, &refused) || got == quorum.OutcomeMismatch {
		return
	}
	its.Reason = refused.Reason
	if !its.Forced && its.Outcome == core.Contended { // of several holders that end at once either may be named
		its.Label = refused.Label
	}
	if what == "release" { // its refusal says no more than that
		its.Token, its.Readers, its.Forced, its.Label = 0, 0, false, ""
	}
	if strings.HasPrefix(what, "R") { // of the record: no owner
		its.Clean = refused.Clean
	}
	want := &quorum.RefusedError{
		Outcome: got, Label: its.Label, Left: its.Left, Counter: its.Token, Readers: its.Readers, Clean: its.Clean,
		Forced: its.Forced, Server: refused.Server, Reason: its.Reason,
	}
	if fmt.Sprintf("%+v", *refused) != fmt.Sprintf("%+v", *want) {
		r.differ("%s refused with %+v, the model with %+v", what, *refused, *want)
	}
}

func (r *modelRun) compareHolders(q quorum.Request, name *model.Name) {
	if q.Set == 0xbad {
		return
	}
	state, err := r.store.Inspect(r.t.Context(), q)
	if err != nil {
		r.differ("Inspect: %v", err)
	}
	var got, want []string
	for _, h := range state.Holders {
		got = append(got, fmt.Sprint(h.Owner, h.Mode, h.Token, h.Since.UnixMicro(), h.Left, h.Label))
	}
	for _, v := range name.Votes {
		id := quorum.Owner{ID: quorum.OwnerID(v.Owner.ID)}
		want = append(want, fmt.Sprint(id.Digest(), quorum.Mode(v.Mode), v.Token, int64(v.Since), min(v.Until.Sub(r.now()), modelMaxTTL), v.Label))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || state.Counter != name.Counter {
		r.differ("holds: %q, counter %d; in the model %q, counter %d", got, state.Counter, want, name.Counter)
	}
}

func (r *modelRun) compareRecord() {
	text, err := r.client.Get(r.t.Context(), "{quorum}:record").Result()
	if errors.Is(err, redis.Nil) && r.rec.Serving == 0 {
		return
	}
	end := model.Time(0)
	if r.rec.Standing == model.Quarantined {
		end = r.rec.End
	}
	if r.rec.Standing == model.Doubtful { // not yet seen by the scripts either
		return
	}
	lost := 0
	if r.rec.Lost {
		lost = 1
	}
	want := fmt.Sprintf("1 %s %016x - %d %d %d %d %d",
		r.rec.Run, r.rec.Serves[0], r.rec.Step, r.rec.Moved, r.rec.Base, end, lost)
	if text != want {
		r.differ("the record is %q (%v), the model's %q", text, err, want)
	}
}

func (r *modelRun) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *modelRun) differ(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s\nafter, latest last:\n\t%s\nreplay with QUORUM_SEED=%d",
		fmt.Sprintf(format, args...), strings.Join(r.log[max(0, len(r.log)-30):], "\n\t"), r.seed)
}

func coreRequest(verb core.Verb, q quorum.Request) core.Request {
	return core.Request{
		Verb: verb, Kind: core.Kind(q.Kind), Mode: core.Mode(q.Mode), Entomb: q.Entomb,
		Owner: core.Owner{ID: core.ID(q.Owner.ID), Attempt: q.Owner.Attempt}, Key: q.Key, Label: q.Label,
		TTL: q.TTL, Floor: q.Floor, Limit: q.Limit, MaxTTL: q.MaxTTL, Set: uint64(q.Set),
	}
}

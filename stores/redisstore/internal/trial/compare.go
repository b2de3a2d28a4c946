package trial

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// ask puts one request to both.
func (r *Run) ask(verb core.Verb, q quorum.Request, name *model.Name) {
	rec := &r.rec
	if verb == core.Release { // the script moves no step and brings no end near, whoever asks
		as := r.rec
		as.Serving, rec = 0, &as
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
	switch {
	case verb != core.Release && its.Outcome == core.Granted:
		r.keep[q.Key] = r.Clock.Now.Add(maxTTL + core.CounterRest + time.Second)
	case verb == core.Acquire && core.WaitKind(q.Wait).Queued(): // longer when it is short
		r.keep[q.Key] = r.Clock.Now.Add(r.Client.PTTL(r.t.Context(), "{quorum}:count:"+q.Key).Val())
	}
	if its.Outcome == core.Granted && verb != core.Release {
		want := quorum.Grant{
			Token: its.Token, TTL: g.TTL, Mode: quorum.Mode(its.Mode), Readers: its.Readers,
			Previous: quorum.Previous(its.Previous), Server: g.Server, Ticket: its.Ticket,
		}
		if g.Ticket == 0 && !core.WaitKind(q.Wait).Queued() { // the bare reply of the usual case
			want.Ticket = 0
		}
		if fmt.Sprint(g) != fmt.Sprint(want) {
			r.differ("granted %+v, the model %+v", g, want)
		}
	}
	r.compareHolders(q, name)
}

// outcome compares how two answers count and what a refusal says.
func (r *Run) outcome(what string, err error, its core.Answer) {
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
		Forced: its.Forced, Server: refused.Server, Reason: its.Reason, Ticket: its.Ticket, Rank: its.Rank,
	}
	if fmt.Sprintf("%+v", *refused) != fmt.Sprintf("%+v", *want) {
		r.differ("%s refused with %+v, the model with %+v", what, *refused, *want)
	}
}

func (r *Run) compareHolders(q quorum.Request, name *model.Name) {
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
		want = append(want, fmt.Sprint(id.Digest(), quorum.Mode(v.Mode), v.Token, int64(v.Since), min(v.Until.Sub(r.now()), maxTTL), v.Label))
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || state.Counter != name.Counter {
		r.differ("holds: %q, counter %d; in the model %q, counter %d", got, state.Counter, want, name.Counter)
	}
}

func (r *Run) compareRecord() {
	text, err := r.Client.Get(r.t.Context(), "{quorum}:record").Result()
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

func (r *Run) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf(format, args...))
}

func (r *Run) differ(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("%s\nafter, latest last:\n\t%s\nreplay with QUORUM_SEED=%d",
		fmt.Sprintf(format, args...), strings.Join(r.log[max(0, len(r.log)-30):], "\n\t"), r.seed)
}

func coreRequest(verb core.Verb, q quorum.Request) core.Request {
	return core.Request{
		Verb: verb, Kind: core.Kind(q.Kind), Mode: core.Mode(q.Mode), Entomb: q.Entomb,
		Owner: core.Owner{ID: core.ID(q.Owner.ID), Attempt: q.Owner.Attempt}, Key: q.Key, Label: q.Label,
		TTL: q.TTL, Floor: q.Floor, Limit: q.Limit, MaxTTL: q.MaxTTL, Set: uint64(q.Set),
		Wait: core.WaitKind(q.Wait), Ticket: q.Ticket, Keep: q.Keep, Claim: q.Claim,
	}
}

// Seed is random, or what QUORUM_SEED says, to replay a run.
func Seed(t *testing.T) uint64 {
	t.Helper()
	if text := os.Getenv("QUORUM_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return rand.Uint64()
}

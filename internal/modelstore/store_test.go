package modelstore_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/modelstore"
)

const maxTTL = time.Minute

// values is the smallest backend there is, and shows what it was asked.
type values struct {
	record model.Record
	names  map[string]*model.Name
	now    model.Time
	err    error
	ctx    context.Context
	keys   []string
}

func (v *values) Update(ctx context.Context, key string, f func(*model.Record, *model.Name, model.Time)) error {
	v.ctx, v.keys = ctx, append(v.keys, key)
	if v.err != nil {
		return v.err
	}
	name := v.names[key]
	if name == nil && key != "" {
		name = &model.Name{}
		v.names[key] = name
	}
	f(&v.record, name, v.now)
	return nil
}

func (v *values) View(ctx context.Context, key string, f func(*model.Record, *model.Name, model.Time)) error {
	v.ctx = ctx
	if v.err != nil {
		return v.err
	}
	record, name := v.record, model.Name{}
	if n := v.names[key]; n != nil {
		name = n.Clone()
	}
	f(&record, &name, v.now)
	return nil
}

func newStore(limits quorum.Limits) (*modelstore.Store, *values) {
	now := model.Time(1_800_000_000_000_000)
	v := &values{record: model.NewRecord("a", "run", now), names: map[string]*model.Name{}, now: now}
	return modelstore.New("a", limits, "server 1", v), v
}

func request(id byte, mods ...func(*quorum.Request)) quorum.Request {
	r := quorum.Request{
		Key: "k", Owner: quorum.Owner{ID: quorum.OwnerID{id}, Attempt: 1},
		TTL: 10 * time.Second, MaxTTL: maxTTL, Limit: time.Second, Set: 1, Label: fmt.Sprint("owner ", id),
	}
	for _, m := range mods {
		m(&r)
	}
	return r
}

func TestGrantAndRefusalAreTranslatedWhole(t *testing.T) {
	s, v := newStore(quorum.Limits{})
	g, err := s.Acquire(t.Context(), request(1, func(r *quorum.Request) { r.Mode, r.Floor = quorum.ModeShared, 6_000_000<<26+70 }))
	want := quorum.Grant{Token: 6_000_000<<26 + 70, TTL: 10 * time.Second, Mode: quorum.ModeShared, Readers: 1, Server: "server 1"}
	if err != nil || !reflect.DeepEqual(g, want) {
		t.Fatalf("Acquire = %+v, %v; want %+v", g, err, want)
	}
	v.now = v.now.Add(4 * time.Second)
	_, err = s.Acquire(t.Context(), request(2))
	var refused *quorum.RefusedError
	if !errors.As(err, &refused) || !errors.Is(err, quorum.ErrHeld) {
		t.Fatalf("Acquire beside a reader = %v, want a refusal that is ErrHeld", err)
	}
	wantRefused := quorum.RefusedError{
		Outcome: quorum.OutcomeContended, Label: "owner 1", Left: 6 * time.Second,
		Counter: g.Token, Readers: 1, Clean: true, Server: "server 1",
	}
	if !reflect.DeepEqual(*refused, wantRefused) {
		t.Errorf("the refusal is %+v, want %+v", *refused, wantRefused)
	}
	if err := s.Release(t.Context(), request(1)); err != nil {
		t.Errorf("Release = %v", err)
	}
	if err := s.Release(t.Context(), request(1)); !errors.Is(err, quorum.ErrNotHeld) {
		t.Errorf("the second Release = %v, want ErrNotHeld", err)
	}
	if g, err := s.Acquire(t.Context(), request(2)); err != nil || g.Previous != quorum.PreviousReleased {
		t.Errorf("Acquire after the release = %+v, %v; want previous released", g, err)
	}
}

func TestForcedOwnerIsTold(t *testing.T) {
	s, _ := newStore(quorum.Limits{})
	if _, err := s.Acquire(t.Context(), request(1)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Acquire(t.Context(), request(2, func(r *quorum.Request) { r.Kind = quorum.KindForce })); err != nil {
		t.Fatal(err)
	}
	_, err := s.Extend(t.Context(), request(1))
	var refused *quorum.RefusedError
	if !errors.As(err, &refused) || !refused.Forced || refused.Label != "owner 2" {
		t.Errorf("Extend = %+v, want forced by owner 2", err)
	}
}

func TestDoublingClientIsNeverClean(t *testing.T) {
	s, _ := newStore(quorum.Limits{Doubles: true})
	if _, err := s.Acquire(t.Context(), request(1)); err != nil {
		t.Fatal(err)
	}
	_, err := s.Acquire(t.Context(), request(2))
	var refused *quorum.RefusedError
	if !errors.As(err, &refused) || refused.Clean {
		t.Errorf("Acquire = %+v, want a refusal that is not clean: a copy may still arrive", err)
	}
}

func TestWhatAStoreCannotTakeIsNeverSent(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*quorum.Request)
		want   error
	}{
		"no key":         {func(r *quorum.Request) { r.Key = "" }, quorum.ErrInvalidKey},
		"long key":       {func(r *quorum.Request) { r.Key = strings.Repeat("k", 513) }, quorum.ErrInvalidKey},
		"key with NUL":   {func(r *quorum.Request) { r.Key = "a\x00b" }, quorum.ErrInvalidKey},
		"key not UTF-8":  {func(r *quorum.Request) { r.Key = "a\xff" }, quorum.ErrInvalidKey},
		"TTL 0":          {func(r *quorum.Request) { r.TTL = 0 }, quorum.ErrInvalidTTL},
		"TTL too short":  {func(r *quorum.Request) { r.TTL = time.Millisecond - 1 }, quorum.ErrInvalidTTL},
		"TTL too long":   {func(r *quorum.Request) { r.TTL = maxTTL + 1 }, quorum.ErrInvalidTTL},
		"long label":     {func(r *quorum.Request) { r.Label = strings.Repeat("l", 257) }, quorum.ErrInvalidOption},
		"floor too high": {func(r *quorum.Request) { r.Floor = 1 << 52 }, quorum.ErrInvalidOption},
	} {
		t.Run(name, func(t *testing.T) {
			s, v := newStore(quorum.Limits{MinTTL: time.Millisecond})
			_, err := s.Acquire(t.Context(), request(1, tc.change))
			if !errors.Is(err, tc.want) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
				t.Fatalf("Acquire = %v (%v), want %v, undelivered", err, quorum.OutcomeOf(err), tc.want)
			}
			if n := v.names["k"]; n != nil && len(n.Votes) > 0 {
				t.Errorf("it left %+v", n.Votes)
			}
		})
	}
	s, _ := newStore(quorum.Limits{MinTTL: time.Millisecond})
	longest := request(1, func(r *quorum.Request) {
		r.Key, r.TTL, r.Label = strings.Repeat("é", 256), time.Millisecond, strings.Repeat("l", 256)
	})
	if _, err := s.Acquire(t.Context(), longest); err != nil {
		t.Errorf("Acquire at the limits = %v", err)
	}
}

func TestR45AnotherMembersRecordIsAMismatch(t *testing.T) {
	_, v := newStore(quorum.Limits{})
	b := modelstore.New("b", quorum.Limits{}, "server 1", v)
	_, err := b.Acquire(t.Context(), request(1))
	if want := `mismatch: it is member "a" of its set and was opened as "b"`; !errors.Is(err, quorum.ErrMismatch) || err.Error() != want {
		t.Errorf("Acquire = %v, want %s", err, want)
	}
	// A record that was lost is written by the first request.
	v.record = model.Record{}
	if _, err := b.ReadStep(t.Context(), request(1)); err != nil || v.record.Member != "b" {
		t.Errorf("ReadStep = %v, and the record is member %q's; want b's", err, v.record.Member)
	}
}

func TestErrorsOfTheBackendAreUnknown(t *testing.T) {
	s, v := newStore(quorum.Limits{})
	v.err = errors.New("disk full")
	_, acquire := s.Acquire(t.Context(), request(1))
	_, extend := s.Extend(t.Context(), request(1))
	_, step := s.ReadStep(t.Context(), request(1))
	_, inspect := s.Inspect(t.Context(), request(1))
	for verb, err := range map[string]error{
		"Acquire": acquire, "Extend": extend, "ReadStep": step, "Inspect": inspect,
		"Release": s.Release(t.Context(), request(1)),
		"Raise":   s.Raise(t.Context(), request(1), quorum.Raise{}),
	} {
		if !errors.Is(err, v.err) || quorum.OutcomeOf(err) != quorum.OutcomeUnknown {
			t.Errorf("%s = %v (%v), want %v, unknown", verb, err, quorum.OutcomeOf(err), v.err)
		}
	}
}

func TestEndedContextAsksNothing(t *testing.T) {
	s, v := newStore(quorum.Limits{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.Acquire(ctx, request(1))
	if !errors.Is(err, context.Canceled) || quorum.OutcomeOf(err) != quorum.OutcomeUndelivered {
		t.Errorf("Acquire = %v (%v), want canceled, undelivered", err, quorum.OutcomeOf(err))
	}
	if len(v.keys) > 0 {
		t.Errorf("the backend was asked for %q", v.keys)
	}
}

func TestLimitBoundsACallThatMayWait(t *testing.T) {
	for reach, want := range map[quorum.Reach]bool{quorum.ReachProcess: false, quorum.ReachHost: true} {
		s, v := newStore(quorum.Limits{Reach: reach})
		if _, err := s.Acquire(t.Context(), request(1)); err != nil {
			t.Fatal(err)
		}
		if _, bounded := v.ctx.Deadline(); bounded != want {
			t.Errorf("reach %v: a deadline is %v, want %v", reach, bounded, want)
		}
	}
}

func TestR61Inspect(t *testing.T) {
	s, v := newStore(quorum.Limits{})
	r := request(1)
	g, err := s.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	taken := v.now
	v.now = v.now.Add(4 * time.Second)
	got, err := s.Inspect(t.Context(), request(9))
	want := quorum.State{Counter: g.Token, Server: "server 1", Holders: []quorum.Holder{{
		Owner: r.Owner.Digest(), Label: "owner 1", Token: g.Token,
		Since: time.UnixMicro(int64(taken)), Left: 6 * time.Second,
	}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Inspect = %+v, %v; want %+v", got, err, want)
	}
	v.now = v.now.Add(6 * time.Second)
	if got, err := s.Inspect(t.Context(), request(9)); err != nil || len(got.Holders) > 0 {
		t.Errorf("Inspect after the vote's end = %+v, %v", got, err)
	}
	if n := v.names["k"]; len(n.Votes) != 1 {
		t.Errorf("Inspect changed the name to %+v", n)
	}
	if _, err := s.Inspect(t.Context(), request(9, func(r *quorum.Request) { r.Set = 2 })); !errors.Is(err, quorum.ErrMismatch) {
		t.Errorf("Inspect of a stranger = %v, want ErrMismatch", err)
	}
	v.record.Restart("run2")
	if got, err := s.Inspect(t.Context(), request(9)); err != nil || !got.Quarantine {
		t.Errorf("Inspect after a restart = %+v, %v; want in quarantine", got, err)
	}
}

func TestHighWater(t *testing.T) {
	s, v := newStore(quorum.Limits{})
	v.record.Restart("run2")
	r := request(1)
	step, err := s.ReadStep(t.Context(), r)
	want := quorum.Step{Step: 6_000_000, Quarantine: v.record.Quarantine(), Left: maxTTL, Server: "server 1"}
	if err != nil || step != want || want.Quarantine == "" {
		t.Fatalf("ReadStep = %+v, %v; want %+v", step, err, want)
	}
	o := quorum.Raise{Quarantine: step.Quarantine, Step: 6_000_100}
	var refused *quorum.RefusedError
	if err := s.Raise(t.Context(), r, o); !errors.As(err, &refused) || refused.Outcome != quorum.OutcomeQuarantined || refused.Left != maxTTL {
		t.Errorf("Raise before its time = %v", err)
	}
	v.now = v.now.Add(maxTTL)
	if step, err := s.ReadStep(t.Context(), r); err != nil || !step.Over || step.Left != 0 {
		t.Errorf("ReadStep at its end = %+v, %v; want over", step, err)
	}
	if err := s.Raise(t.Context(), r, o); err != nil {
		t.Errorf("Raise = %v", err)
	}
	if v.record.Base != 6_000_101<<26 {
		t.Errorf("base %d, want %d", v.record.Base, int64(6_000_101)<<26)
	}
	for _, key := range v.keys {
		if key != "" {
			t.Errorf("the record was asked for under key %q", key)
		}
	}
}

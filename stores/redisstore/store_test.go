package redisstore_test

import (
	"errors"
	"testing"

	"github.com/quorumlock/quorum/internal/testserver"

	"github.com/quorumlock/quorum"
)

func TestEveryVerb(t *testing.T) {
	c := client(t, testserver.Redis(t).Addr)
	s := store(t, c)
	a, b := ask("k", owner()), ask("k", owner())
	_, err := s.Acquire(t.Context(), a)
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	declareNew(t, s)

	first := mustAcquire(t, s, a)
	if first.Token <= 0 || first.Previous != quorum.PreviousUnknown {
		t.Errorf("first grant: %+v", first)
	}
	_, err = s.Acquire(t.Context(), b)
	refused := (*quorum.RefusedError)(nil)
	if !errors.Is(err, quorum.ErrHeld) || !errors.As(err, &refused) {
		t.Fatalf("a second owner: %v", err)
	}
	if refused.Label != "tester" || refused.Left <= 0 || refused.Left > a.TTL || !refused.Clean || refused.Counter != first.Token {
		t.Errorf("refusal: %+v", refused)
	}
	a.Floor = first.Token + 10
	g, err := s.Extend(t.Context(), a)
	if err != nil || g.Token != first.Token+10 {
		t.Fatalf("extend: %+v %v", g, err)
	}
	state, err := s.Inspect(t.Context(), a)
	if err != nil || len(state.Holders) != 1 || state.Holders[0].Owner != a.Owner.Digest() || state.Holders[0].Token != g.Token {
		t.Fatalf("inspect: %+v %v", state, err)
	}
	mustRelease(t, s, a)
	wantOutcome(t, s.Release(t.Context(), a), quorum.OutcomeNotHeld)
	next := mustAcquire(t, s, b)
	if next.Token != g.Token+1 || next.Previous != quorum.PreviousReleased {
		t.Errorf("next grant: %+v, want token %d", next, g.Token+1)
	}
	force := ask("k", owner())
	force.Kind, force.Label = quorum.KindForce, "operator"
	taken := mustAcquire(t, s, force)
	if taken.Token != next.Token+1 || taken.Previous != quorum.PreviousUnknown {
		t.Errorf("forced grant: %+v", taken)
	}
	_, err = s.Extend(t.Context(), b)
	if !errors.As(err, &refused) || refused.Outcome != quorum.OutcomeNotHeld || !refused.Forced || refused.Label != "operator" {
		t.Errorf("extend after a take-over: %v", err)
	}
	mustRelease(t, s, force)
}

func TestReadersConvertAndRepair(t *testing.T) {
	s := store(t, client(t, testserver.Redis(t).Addr))
	declareNew(t, s)
	writer := ask("k", owner())
	taken := mustAcquire(t, s, writer)
	mustRelease(t, s, writer)

	one, two := ask("k", owner()), ask("k", owner())
	one.Mode, two.Mode = quorum.ModeShared, quorum.ModeShared
	r1, r2 := mustAcquire(t, s, one), mustAcquire(t, s, two)
	if r1.Token != taken.Token+1 || r2.Token != r1.Token || r2.Readers != 2 || r2.Mode != quorum.ModeShared {
		t.Errorf("readers: %+v %+v", r1, r2)
	}
	up := one
	up.Kind, up.Mode, up.Owner.Attempt = quorum.KindConvert, quorum.ModeExclusive, 2
	_, err := s.Acquire(t.Context(), up)
	wantOutcome(t, err, quorum.OutcomeContended)
	mustRelease(t, s, two)
	w := mustAcquire(t, s, up)
	if w.Token != r1.Token+1 || w.Mode != quorum.ModeExclusive {
		t.Errorf("promotion: %+v", w)
	}
	down := up
	down.Mode, down.Owner.Attempt = quorum.ModeShared, 3
	if d := mustAcquire(t, s, down); d.Token != w.Token || d.Readers != 1 {
		t.Errorf("demotion: %+v", d)
	}
	down.Entomb = true
	mustRelease(t, s, down)
	_, err = s.Acquire(t.Context(), down)
	wantOutcome(t, err, quorum.OutcomeContended)

	fix := ask("k", owner())
	fix.Kind, fix.Floor = quorum.KindRepair, w.Token-1
	_, err = s.Acquire(t.Context(), fix)
	wantOutcome(t, err, quorum.OutcomeContended)
	fix.Floor = w.Token + 5
	if g := mustAcquire(t, s, fix); g.Token != w.Token+5 {
		t.Errorf("repair: %+v", g)
	}
}

package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// textOf is the text of an acquisition that failed as the stores say.
func textOf(names []string, answer func(i int) error) string {
	e := &quorum.OpError{Op: "acquire", Key: "k", Need: len(names)/2 + 1}
	for i, name := range names {
		err := answer(i)
		e.Votes = append(e.Votes, quorum.Vote{Store: name, Outcome: quorum.OutcomeOf(err), Err: err})
	}
	return e.Error()
}

func TestR82WhatStoresSayIsToldOnceAndWhole(t *testing.T) {
	const todo = "do all clients list the same stores, strategy and MaxTTL?"
	for _, tc := range []struct {
		name   string
		answer func(i int) error
		want   string
	}{
		{"held, with clocks that differ", func(i int) error {
			return &quorum.RefusedError{Outcome: quorum.OutcomeContended, Label: "host pid 24373 since 2026-11-30T12:00:00Z",
				Left: 20*time.Second + time.Duration(i)*time.Millisecond}
		}, "a, b, c, d, e contended: held by host pid 24373 since 2026-11-30T12:00:00Z for at most 20.004s more)"},
		{"two holders", func(i int) error {
			return &quorum.RefusedError{Outcome: quorum.OutcomeContended, Label: fmt.Sprint("host ", i/3), Left: time.Second}
		}, "a, b, c contended: held by host 0 for at most 1s more; d, e contended: held by host 1 for at most 1s more)"},
		{"quarantined, and two away", func(i int) error {
			if i < 2 {
				return quorum.Undelivered(errors.New("dial tcp 10.0.0.1:6379: connect: connection refused"))
			}
			return &quorum.RefusedError{Outcome: quorum.OutcomeQuarantined, Left: time.Minute}
		}, "c, d, e quarantined for 1m0s more: it may have forgotten votes; a new set needs Init; a, b undelivered: not sent: " +
			"dial tcp 10.0.0.1:6379: connect: connection refused)"},
		{"a store that names itself, and one whose name ends a word", func(i int) error {
			return fmt.Errorf("not sent: redis store %s: more: refused", []string{"a", "b", "c", "d", "e"}[i])
		}, "needed: a, b, c, d, e unknown: not sent: more: refused)"},
		{"mismatch", func(int) error {
			return &quorum.RefusedError{Outcome: quorum.OutcomeMismatch,
				Reason: "it serves the set 0123456789abcdef and was asked for fedcba9876543210: " + todo}
		}, todo},
		{"five long texts", func(i int) error {
			return fmt.Errorf("%d%s", i, strings.Repeat(" words", 100))
		}, " wor..; and 2 more)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text := textOf([]string{"a", "b", "c", "d", "e"}, tc.answer)
			if !strings.Contains(text, tc.want) || len(text) > 1024 {
				t.Errorf("%d bytes: %s\nwant at most 1024 and\n%s", len(text), text, tc.want)
			}
		})
	}
}

func TestR82ErrorOfVeryManyStoresIsBounded(t *testing.T) {
	for _, long := range []int{10, 300} {
		var names []string
		for i := range quorum.MaxMembers {
			names = append(names, fmt.Sprintf("store%d-%s", i, strings.Repeat("x", long)))
		}
		text := textOf(names, func(i int) error { return fmt.Errorf("%d: connection refused", i%2) })
		if len(text) > 1024 || strings.Count(text, "connection refused") != 2 || long > 250 && !strings.Contains(text, " and 7 more") {
			t.Errorf("%d bytes: %s", len(text), text)
		}
	}
}

func TestStoreThatNobodyNeededIsNotSaidToBeAwaited(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		for i, sp := range b.spoil {
			fault := storetest.Fail(errDown)
			if i == 2 {
				fault = storetest.LateReply(time.Second)
			}
			sp.Set(storetest.Always(fault))
		}
		_, err := b.locker(quorum.AskOrder(quorum.AllAtOnce)).Force(t.Context(), "k", quorum.Wait(0))
		if err == nil || !strings.Contains(err.Error(), "c unknown: not waited for, the other stores decided)") {
			t.Errorf("two of three refuse at once: %v", err)
		}
	})
}

func TestReadsSayWhichLimitStruck(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		b.spoil[0].Set(storetest.Always(storetest.Hang()))
		b.spoil[1].Set(storetest.Always(storetest.Freeze()))
		defer b.spoil[1].Thaw()
		status, err := b.locker().Inspect(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range status.Stores[:2] {
			if s.Err == nil || s.Err.Error() != "no answer within 1s" {
				t.Errorf("store %s that is silent: %v", s.Name, s.Err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if status, err = b.locker().Inspect(ctx, "k"); err != nil || strings.Contains(fmt.Sprint(status.Stores[1].Err), "within") {
			t.Errorf("the caller's own context ended: %+v, %v", status, err)
		}
	})
}

func TestCheckTellsTwinsAndAnotherSet(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		if err := b.locker().Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		must(t, b.locker(), "k") // from now on they know their set
		b.settle()
		const long = "redis://localhost:17371?prefix=twin-of-another-one-that-has-a-long-name"
		set := mustCombine(t, quorum.Consensus(), b.spoil[0], b.spoil[1], &alias{b.memory[0], long})
		err := b.lockerOf(set).Check(t.Context())
		if overlap(err) != "ErrMismatch" || !strings.Contains(fmt.Sprint(err), "check: the store serves another set, two members are one server (") {
			t.Errorf("another set, with a twin: %v", err)
		}
		if err := b.lockerOf(b.set, quorum.MaxTTL(2*time.Minute)).Check(t.Context()); overlap(err) != "ErrMismatch" {
			t.Errorf("Check with another MaxTTL = %v, want ErrMismatch", err)
		}
	})
	inBubble(t, 3, func(t *testing.T, b *bed) {
		const long = "redis://localhost:17371?prefix=twin-of-another-one-that-has-a-long-name"
		set := mustCombine(t, quorum.Consensus(), b.spoil[0], b.spoil[1], &alias{b.memory[0], long})
		err := b.lockerOf(set).Check(t.Context())
		want := `check: two members are one server (2 granted, 2 needed: ` + long + ` twin: store "` + long + `" is the same server as "a"`
		if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("Check of twins = %v\nwant %s", err, want)
		}
	})
}

func TestTextsNameTheOperation(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		lease := must(t, l, "k")
		expect := func(err, is error, want string) {
			t.Helper()
			if !errors.Is(err, is) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v, want %v that begins with %s", err, is, want)
			}
		}
		expect(lease.Extend(t.Context(), -1), quorum.ErrInvalidTTL, `quorum: extend "k": invalid TTL: `)
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect(lease.Extend(t.Context(), time.Second), quorum.ErrReleased, `quorum: extend "k": lease released`)
		expect(lease.Demote(t.Context()), quorum.ErrReleased, `quorum: demote "k": lease released`)
		_, err := l.Slots("k", 0)
		expect(err, quorum.ErrInvalidOption, `quorum: slots "k": invalid option: `)
		_, err = l.AcquireAll(t.Context(), nil)
		expect(err, quorum.ErrInvalidKey, `quorum: acquire all: invalid key: no keys`)
		_, err = quorum.Open(t.Context(), []string{"test://a"}, quorum.Opener{
			Schemes: []string{"test"},
			Open:    func(context.Context, *url.URL) (quorum.Store, error) { return nil, quorum.ErrUnsupported },
		})
		expect(err, quorum.ErrUnsupported, `quorum: open store 1 of 1: test://a: not supported by the store`)
	})
}

func TestNilContextIsRefusedBeforeAnythingIsSent(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		lease := must(t, l, "held")
		reader := must(t, l, "read", quorum.Shared())
		group, err := l.AcquireAll(t.Context(), []string{"x", "y"})
		if err != nil {
			t.Fatal(err)
		}
		slots, err := l.Slots("s", 2)
		if err != nil {
			t.Fatal(err)
		}
		b.settle()
		calls := b.calls()
		var none context.Context
		second := func(_ any, err error) error { return err }
		nothing := func(context.Context, *quorum.Lease) error { return errors.New("fn was called") }
		for name, err := range map[string]error{
			"Acquire":       second(l.Acquire(none, "k")),
			"TryAcquire":    second(l.TryAcquire(none, "k")),
			"Force":         second(l.Force(none, "k")),
			"AcquireAll":    second(l.AcquireAll(none, []string{"k"})),
			"Slots.Acquire": second(slots.Acquire(none)),
			"Do":            l.Do(none, "k", nothing),
			"Elect":         l.Elect(none, "k", nothing),
			"Resume":        second(l.Resume(none, nil)),
			"Inspect":       second(l.Inspect(none, "k")),
			"Check":         l.Check(none),
			"Init":          l.Init(none),
			"Used":          second(l.Used(none)),
			"Forgotten":     l.Forgotten(none, "a"),
			"Extend":        lease.Extend(none, time.Second),
			"Promote":       second(reader.Promote(none)),
			"Demote":        lease.Demote(none),
			"Release":       lease.Release(none),
			"Group.Release": group.Release(none),
			"Held":          quorum.Held(none, "k"),
			"Close":         l.Close(none),
			"Open":          second(quorum.Open(none, []string{"memory:a"})),
			"Change":        second(quorum.Change(none, l, l, quorum.ChangeDone)),
			"a composite":   second(b.set.Acquire(none, b.request("k"))),
		} {
			if !errors.Is(err, quorum.ErrInvalidOption) {
				t.Errorf("%s(nil) = %v, want ErrInvalidOption", name, err)
			}
		}
		if lease.Err() != nil || reader.Err() != nil || group.Err() != nil {
			t.Errorf("a nil context ended a lease: %v, %v, %v", lease.Err(), reader.Err(), group.Err())
		}
		if n := b.calls(); n != calls {
			t.Errorf("%d calls left", n-calls)
		}
	})
}

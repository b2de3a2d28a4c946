package quorum_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func TestF163RollBackDoesNotHideWhatTheStoresSaid(t *testing.T) {
	// The roll-back reaches every store that granted or did not answer; the
	// error still tells of the acquisition.
	inBubble(t, 5, func(t *testing.T, b *bed) {
		down := errors.New("connection refused")
		b.rival("k", time.Minute, 1)
		b.spoil[1].Set(storetest.Always(storetest.Latency(time.Millisecond)))
		acquire := storetest.Verbs(storetest.VerbAcquire)
		b.spoil[2].Set(storetest.On(acquire, storetest.Latency(time.Millisecond), storetest.Fail(down)))
		b.spoil[3].Set(storetest.On(acquire, storetest.Hang()))
		b.spoil[4].Set(storetest.On(acquire, storetest.Latency(2*time.Millisecond), storetest.Fail(errors.New("WRONGPASS invalid username-password pair"))))
		// a answers at once, the others until it is hopeless after 2 ms.
		_, err := b.locker(quorum.AskOrder(quorum.AllAtOnce)).TryAcquire(t.Context(), "k")
		op := (*quorum.OpError)(nil)
		if !errors.As(err, &op) || len(op.Votes) != 5 {
			t.Fatalf("%v has no five votes", err)
		}
		for i, want := range []struct {
			outcome quorum.Outcome
			text    string
		}{
			{quorum.OutcomeGranted, ""}, {quorum.OutcomeContended, "held by a rival"}, {quorum.OutcomeUnknown, "connection refused"},
			{quorum.OutcomeUnknown, "no answer"}, {quorum.OutcomeUnknown, "WRONGPASS"},
		} {
			v := op.Votes[i]
			if v.Outcome != want.outcome || (v.Err == nil) != (want.text == "") || v.Err != nil && !strings.Contains(v.Err.Error(), want.text) {
				t.Errorf("store %s: %v, %v, want %v and %q", v.Store, v.Outcome, v.Err, want.outcome, want.text)
			}
			if !strings.Contains(err.Error(), want.text) || !strings.Contains(err.Error(), v.Store+" ") {
				t.Errorf("%q does not tell of store %s that it said %q", err, v.Store, want.text)
			}
		}
		if len(err.Error()) > 1024 || strings.Contains(err.Error(), "\n") {
			t.Errorf("%d bytes are no line of a log: %q", len(err.Error()), err)
		}
		b.settle()
		if b.held("k") != 1 {
			t.Errorf("%d stores hold it, want the rival's one", b.held("k"))
		}
	})
	t.Run("a time-out names its limit", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			for _, sp := range b.spoil {
				sp.Set(storetest.Always(storetest.Hang()))
			}
			_, err := b.locker(quorum.CallLimit(70*time.Millisecond)).TryAcquire(t.Context(), "k")
			if err == nil || !strings.Contains(err.Error(), "70ms") || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want one that names the limit of 70ms that struck and does not say that the caller's time is over", err)
			}
		})
	})
}

func TestF169OutcomesAddUp(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		order := b.ask("k")
		b.rival("k", 3*time.Second, order[0], order[1], order[2])
		b.spoil[order[4]].Set(storetest.Always(storetest.Fail(nil)))
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		l := b.locker()
		_, err := l.Acquire(ctx, "k")
		op := (*quorum.OpError)(nil)
		if !errors.As(err, &op) {
			t.Fatal(err)
		}
		if op.Tries < 2 || op.Took < 2*time.Second || op.Took > 2050*time.Millisecond || op.Need != 3 || op.Op != "acquire" || op.Key != "k" {
			t.Errorf("the error says %+v, want several tries in 2s, and 3 needed", *op)
		}
		sum := func(votes []quorum.Vote) (granted, contended, rest int) {
			for _, v := range votes {
				switch v.Outcome {
				case quorum.OutcomeGranted:
					granted++
				case quorum.OutcomeContended:
					contended++
				default:
					rest++
				}
			}
			return
		}
		if g, c, r := sum(op.Votes); g != 0 || c != 3 || r != 2 {
			t.Errorf("granted %d, contended %d, else %d; want 0, 3, 2", g, c, r)
		}
		lease := must(t, l, "k")
		b.settle()
		if g, c, r := sum(lease.Votes()); g != 4 || c != 0 || r != 1 {
			t.Errorf("of a success: granted %d, contended %d, else %d; want 4, 0, 1", g, c, r)
		}
		if got := b.seen(quorum.EventAcquired); len(got) != 1 || got[0].Took <= 0 || len(got[0].Votes) != 5 {
			t.Errorf("the event of the success is %+v, want the time waited and five votes", got)
		}
	})
}

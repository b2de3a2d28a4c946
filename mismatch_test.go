package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

func TestR45ClientsThatDisagreeAreTold(t *testing.T) {
	for name, other := range map[string]func(t *testing.T, b *bed) *quorum.Locker{
		"strategy": func(t *testing.T, b *bed) *quorum.Locker {
			return b.lockerOf(mustCombine(t, quorum.Unanimous(), b.members()...))
		},
		"MaxTTL": func(_ *testing.T, b *bed) *quorum.Locker { return b.lockerOf(b.set, quorum.MaxTTL(2*time.Minute)) },
		"fewer stores": func(t *testing.T, b *bed) *quorum.Locker {
			return b.lockerOf(mustCombine(t, quorum.Consensus(), b.members()[:1]...))
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				lease := must(t, b.locker(), "taken by the first")
				b.settle() // all three know their set
				start := time.Now()
				got, err := other(t, b).Acquire(t.Context(), "k")
				within(t, "an Acquire that cannot succeed", since(start), 0, 0)
				if got != nil || !errors.Is(err, quorum.ErrMismatch) || errors.Is(err, quorum.ErrHeld) || errors.Is(err, quorum.ErrNoQuorum) {
					t.Errorf("the second client got %v, %v, want ErrMismatch and no other", got, err)
				}
				b.settle()
				b.checkEmpty("k")
				if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
					t.Errorf("the first client's lease was disturbed: %v", err)
				}
			})
		})
	}
}

func TestR45MismatchRollsBackWhatWasGranted(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		must(t, b.locker(), "taken by the first")
		b.settle()
		fresh := memstore.New("fresh", memstore.WithClock(clock.Go()))
		set := mustCombine(t, quorum.Consensus(), b.spoil[0], b.spoil[1], fresh)
		key := "k"
		for i := 0; quorum.AskOrderOf(set, key)[0] != 2; i++ {
			key = fmt.Sprint("k", i)
		}
		if _, err := b.lockerOf(set).Acquire(t.Context(), key); !errors.Is(err, quorum.ErrMismatch) {
			t.Fatalf("a set that shares two stores with another: %v, want ErrMismatch", err)
		}
		b.settle()
		r := b.request(key)
		r.Set = quorum.FingerprintOf(set, time.Minute)
		if state, err := fresh.Inspect(context.Background(), r); err != nil || len(state.Holders) != 0 || state.Counter == 0 {
			t.Errorf("the store that granted before the others refused says %+v, %v, want a counter and no holder", state, err)
		}
	})
}

// mismatch is what a store of another set answers.
var mismatch = &quorum.RefusedError{Outcome: quorum.OutcomeMismatch, Reason: "it serves another set"}

func TestR45MismatchInTheConfirmPhase(t *testing.T) {
	// The counter of the store asked second is ahead, so the first must be
	// raised; meanwhile an operator moved it to another set.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		order := b.ask("k")
		r := b.request("k")
		r.Owner.ID[0], r.Owner.Attempt = 1, 1
		for range 3 {
			if _, err := b.memory[order[1]].Acquire(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := b.memory[order[1]].Release(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		b.spoil[order[0]].Set(storetest.On(storetest.Verbs(storetest.VerbExtend), storetest.Fail(mismatch)))
		lease, err := b.locker(quorum.AskOrder(quorum.InOrder)).Acquire(t.Context(), "k", quorum.Wait(time.Second))
		if lease != nil || !errors.Is(err, quorum.ErrMismatch) {
			t.Fatalf("one mismatch in the confirm phase: %v, %v, want ErrMismatch", lease, err)
		}
		b.settle()
		b.checkEmpty("k")
	})
}

func TestR45MismatchInRenewal(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		order := b.ask("k")
		lease := must(t, b.locker(), "k")
		b.settle()
		b.spoil[order[0]].Set(storetest.Always(storetest.Fail(mismatch)))
		if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
			t.Errorf("one of three serves another set now, and two extended: %v", err)
		}
		b.settle()
		failed := b.seen(quorum.EventStoreFailed)
		if len(failed) != 1 || !errors.Is(failed[0].Err, quorum.ErrMismatch) {
			t.Errorf("events of failed stores: %+v, want one ErrMismatch", failed)
		}
		b.spoil[order[1]].Set(storetest.Always(storetest.Fail(mismatch)))
		if err := lease.Extend(t.Context(), 30*time.Second); !errors.Is(err, quorum.ErrLost) {
			t.Errorf("two of three serve another set: %v, want ErrLost", err)
		}
		<-lease.Context().Done()
		if b.held("k") != 3 {
			t.Errorf("a lost lease was taken back from %d stores before its holder stopped", 3-b.held("k"))
		}
		b.spoil[order[0]].Set()
		b.spoil[order[1]].Set()
		if err := lease.Release(t.Context()); !errors.Is(err, quorum.ErrLost) {
			t.Errorf("Release after the loss = %v, want ErrLost", err)
		}
		b.checkEmpty("k")
	})
}

func TestR41VotesOnSuccessAndFailure(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		order := b.ask("k")
		for n, i := range order {
			b.spoil[i].Set(storetest.Always(storetest.Latency(time.Duration(n+1) * time.Millisecond)))
		}
		down := errors.New("connection refused")
		b.spoil[order[1]].Set(storetest.Always(storetest.Latency(2*time.Millisecond), storetest.Fail(down)))
		l := b.locker()
		lease := must(t, l, "k")
		b.settle()
		for n, i := range order {
			v := lease.Votes()[i]
			want := quorum.Vote{Store: string(rune('a' + i)), Outcome: quorum.OutcomeGranted, Token: lease.Token(), Took: time.Duration(n+1) * time.Millisecond}
			if n == 1 {
				want.Outcome, want.Token = quorum.OutcomeUnknown, 0
			}
			if v.Store != want.Store || v.Outcome != want.Outcome || v.Token != want.Token || v.Took != want.Took {
				t.Errorf("vote of the store asked as number %d is %+v, want %+v", n+1, v, want)
			}
			if (n == 1) != errors.Is(v.Err, down) {
				t.Errorf("vote of the store asked as number %d has error %v", n+1, v.Err)
			}
		}

		// Another client, which does not know yet that a store fails.
		_, err := b.locker().TryAcquire(t.Context(), "k")
		op := (*quorum.OpError)(nil)
		if !errors.As(err, &op) || len(op.Votes) != 5 {
			t.Fatalf("%v has no five votes", err)
		}
		want := []quorum.Outcome{quorum.OutcomeContended, quorum.OutcomeUnknown, quorum.OutcomeContended,
			quorum.OutcomeNotAsked, quorum.OutcomeNotAsked}
		for n, i := range order {
			if op.Votes[i].Outcome != want[n] {
				t.Errorf("the failed vote of the store asked as number %d is %v, want %v", n+1, op.Votes[i].Outcome, want[n])
			}
		}
	})
}

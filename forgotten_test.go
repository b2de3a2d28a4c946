package quorum_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
)

// An operator says that a store has forgotten: it gives no vote until MaxTTL has
// passed, and is back after that, with a higher token.
func TestForgottenStoreIsKeptOut(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		first := must(t, l, "k")
		if err := first.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		name := b.set.Members()[1].Name()
		if err := l.Forgotten(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if err := l.Forgotten(t.Context(), name); err != nil { // again changes nothing
			t.Fatal(err)
		}
		second := must(t, l, "k", quorum.AskOrder(quorum.AllAtOnce))
		b.settle()
		if v := second.Votes()[1]; v.Outcome != quorum.OutcomeQuarantined {
			t.Errorf("the store that forgot answers %v", v.Outcome)
		}
		if err := second.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // MaxTTL, and the way out
		third := must(t, l, "k", quorum.AskOrder(quorum.AllAtOnce))
		b.settle()
		if v := third.Votes()[1]; v.Outcome != quorum.OutcomeGranted || third.Token() <= second.Token() {
			t.Errorf("after its quarantine it answers %v; token %d after %d", v.Outcome, third.Token(), second.Token())
		}
	})
}

func TestForgottenIsCheckedBeforeAnythingIsSent(t *testing.T) {
	l, err := quorum.New(memstore.New("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(t.Context()) }()
	for _, names := range [][]string{nil, {"b"}} {
		if err := l.Forgotten(t.Context(), names...); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("Forgotten(%v) = %v", names, err)
		}
	}
}

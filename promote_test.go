package quorum_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func (b *bed) take(l *quorum.Locker, key string, options ...quorum.Option) *quorum.Lease {
	b.t.Helper()
	lease, err := l.Acquire(b.t.Context(), key, options...)
	if err != nil {
		b.t.Fatal(err)
	}
	return lease
}

func TestR32ReadersTogetherWriterAlone(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker(quorum.TTL(10 * time.Second))
		one := b.take(locks, "k", quorum.Shared())
		two := b.take(locks, "k", quorum.Shared())
		if one.Mode() != quorum.ModeShared || one.Token() != two.Token() {
			t.Errorf("readers are %s with tokens %d and %d, want shared with one token", one.Mode(), one.Token(), two.Token())
		}
		if _, err := locks.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Errorf("a writer beside readers: %v, want ErrHeld", err)
		}
		for _, r := range []*quorum.Lease{one, two} {
			if err := r.Release(t.Context()); err != nil {
				t.Error(err)
			}
		}
		writer := b.take(locks, "k")
		if writer.Token() <= one.Token() {
			t.Errorf("the writer's token %d is not above the readers' %d", writer.Token(), one.Token())
		}
		if _, err := locks.TryAcquire(t.Context(), "k", quorum.Shared()); !errors.Is(err, quorum.ErrHeld) {
			t.Errorf("a reader beside a writer: %v, want ErrHeld", err)
		}
		if err := writer.Release(t.Context()); err != nil {
			t.Error(err)
		}
		late := b.take(locks, "k", quorum.Shared())
		if late.Token() <= writer.Token() {
			t.Errorf("the next reader's token %d is not above the writer's %d", late.Token(), writer.Token())
		}
	})
}

func TestR32Promotion(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker(quorum.TTL(10*time.Second), quorum.RenewEvery(3*time.Second))
		reader := b.take(locks, "k", quorum.Shared())
		writer, err := reader.Promote(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if writer.Mode() != quorum.ModeExclusive || writer.Token() <= reader.Token() || writer.Err() != nil {
			t.Errorf("promoted to %s with token %d after %d, %v", writer.Mode(), writer.Token(), reader.Token(), writer.Err())
		}
		if cause := context.Cause(reader.Context()); !errors.Is(cause, quorum.ErrReleased) || !errors.Is(reader.Err(), quorum.ErrReleased) {
			t.Errorf("the reader's lease ended with %v and %v, want ErrReleased", cause, reader.Err())
		}
		if err := quorum.Held(writer.Context(), "k"); err != nil {
			t.Error(err)
		}
		if err := reader.Release(t.Context()); err != nil {
			t.Errorf("to release the reader's lease again: %v", err)
		}
		if err := reader.Extend(t.Context(), time.Second); !errors.Is(err, quorum.ErrReleased) {
			t.Errorf("to extend the reader's lease: %v, want ErrReleased", err)
		}
		if _, err := reader.Promote(t.Context()); !errors.Is(err, quorum.ErrReleased) {
			t.Errorf("to promote twice: %v, want ErrReleased", err)
		}
		if _, err := writer.Promote(t.Context()); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("to promote a writer: %v, want ErrInvalidOption", err)
		}
		time.Sleep(time.Minute) // renewals go on
		if err := writer.Err(); err != nil {
			t.Error(err)
		}
		if n := len(b.seen(quorum.EventPromoted)); n != 1 {
			t.Errorf("%d promotions told, want 1", n)
		}
		if err := writer.Release(t.Context()); err != nil {
			t.Error(err)
		}
		b.checkEmpty("k")
	})
}

func TestR32PromotionBesideReadersKeepsTheLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		one, two := b.take(locks, "k", quorum.Shared()), b.take(locks, "k", quorum.Shared())
		for _, r := range []*quorum.Lease{one, two} {
			if w, err := r.Promote(t.Context()); !errors.Is(err, quorum.ErrHeld) || w != nil {
				t.Errorf("promoted beside a reader: %v, %v, want ErrHeld", w, err)
			}
			if r.Err() != nil || r.Mode() != quorum.ModeShared {
				t.Errorf("the lease is %s and %v, want shared and held", r.Mode(), r.Err())
			}
		}
		if err := two.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := one.Promote(t.Context()); err != nil {
			t.Errorf("promoted alone: %v", err)
		}
	})
}

func TestR32DemotionWithoutAGap(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		writer := b.take(locks, "k")
		token := writer.Token()
		if err := writer.Demote(t.Context()); err != nil {
			t.Fatal(err)
		}
		if writer.Mode() != quorum.ModeShared || writer.Token() != token || writer.Err() != nil {
			t.Errorf("demoted to %s, token %d after %d, %v", writer.Mode(), writer.Token(), token, writer.Err())
		}
		if _, err := locks.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Errorf("another writer: %v, want ErrHeld", err)
		}
		reader := b.take(locks, "k", quorum.Shared())
		if reader.Token() <= token {
			t.Errorf("a reader's token is %d, not above the earlier writer's %d", reader.Token(), token)
		}
		if err := writer.Demote(t.Context()); err != nil {
			t.Errorf("to demote a reader: %v", err)
		}
	})
}

func TestR32DemotionThatIsNotConfirmedEndsTheLease(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		writer := b.take(locks, "k")
		for _, s := range b.spoil[:2] {
			s.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Hang()))
		}
		lost := (*quorum.LostError)(nil)
		if err := writer.Demote(t.Context()); !errors.As(err, &lost) {
			t.Fatalf("demoted without a quorum: %v, want a LostError", err)
		}
		if !errors.Is(writer.Err(), quorum.ErrLost) {
			t.Errorf("the lease is %v, want lost", writer.Err())
		}
	})
}

package quorum_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
)

func TestF014VotesRevokedEarlyAreNoticedAtTheNextRenewal(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(30 * time.Second))
		start := time.Now()
		lease := must(t, l, "k")
		time.Sleep(time.Second)
		b.wipe("k", 0, 1, 2)
		<-lease.Context().Done()
		within(t, "the loss", since(start), time.Second, 10100*time.Millisecond)
		b.settle()
		if b.held("k") != 2 {
			t.Errorf("%d stores hold the key: a lease without a quorum must put nothing back", b.held("k"))
		}
	})
}

func TestF025FailOverToAnEmptyReplica(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(9 * time.Second))
		lease := must(t, l, "k")
		b.settle()
		b.wipe("k", 2)
		if _, err := b.locker().TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Errorf("with one vote of three gone a rival got %v", err)
		}
		b.settle()
		b.wipe("k", 1) // before a renewal could repair the first
		time.Sleep(3 * time.Second)
		synctest.Wait()
		if lease.Err() == nil {
			t.Error("the holder goes on with one vote of three")
		}
	})
}

func TestF157LossIsToldOnceAndReleaseIsNoLoss(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(time.Second))
		given, lost := must(t, l, "given"), must(t, l, "lost")
		b.settle()
		if err := given.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		b.wipe("lost", 0, 1, 2)
		time.Sleep(3 * time.Second)
		_ = lost.Release(t.Context())
		b.settle()
		events := b.seen(quorum.EventLost)
		if len(events) != 1 || events[0].Key != "lost" {
			t.Errorf("losses told: %+v, want one, of the key that was lost", events)
		}
		if !errors.Is(given.Err(), quorum.ErrReleased) || errors.Is(given.Err(), quorum.ErrLost) {
			t.Errorf("a released lease says %v", given.Err())
		}
	})
}

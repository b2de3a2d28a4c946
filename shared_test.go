package quorum_test

import (
	"context"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/rwtest"
)

func TestR32RandomReadersAndWritersInMemory(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		stats, err := rwtest.Run(t.Context(), func() *quorum.Locker { return b.locker() }, 5, 3, 20_000, time.Hour, 1)
		if err != nil {
			t.Error(err)
		}
		if stats.Promoted < 5 || stats.Demoted < 5 {
			t.Errorf("the steps show little: %+v", stats)
		}
		b.checkEmpty("shared")
	})
}

// unshared is a store that cannot share.
type unshared struct{ quorum.Store }

func (u unshared) Limits() quorum.Limits {
	l := u.Store.Limits()
	l.Shares = false
	return l
}

func (u unshared) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	r.Mode = quorum.ModeExclusive
	return u.Store.Acquire(ctx, r)
}

// A store that cannot share grants to one reader at a time, and the votes say so.
func TestR32StoreThatCannotShareSaysSo(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		set, err := quorum.Combine(quorum.Consensus(), b.memory[0], unshared{b.memory[1]}, b.memory[2])
		if err != nil {
			t.Fatal(err)
		}
		b.set = set
		locks := b.locker()
		lease := b.take(locks, "k", quorum.Shared())
		b.settle() // the third store is asked in the background
		for _, v := range lease.Votes() {
			want := quorum.ModeShared
			if v.Store == "b" {
				want = quorum.ModeExclusive
			}
			if v.Mode != want {
				t.Errorf("store %s voted %s, want %s", v.Store, v.Mode, want)
			}
		}
		other := b.take(locks, "k", quorum.Shared()) // a majority can share
		if n := len(other.Votes()); n != 3 || other.Err() != nil {
			t.Errorf("%d votes, %v", n, other.Err())
		}
	})
}

func TestF035ReadersHaveLeasesOfTheirOwn(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		locks := b.locker()
		long := b.take(locks, "k", quorum.Shared(), quorum.NoRenew(), quorum.TTL(30*time.Second))
		b.take(locks, "k", quorum.Shared(), quorum.NoRenew(), quorum.TTL(5*time.Second)) // as of a process that is killed
		time.Sleep(6 * time.Second)
		if long.Err() != nil {
			t.Errorf("the other reader's end took this one with it: %v", long.Err())
		}
		for i := range 3 {
			if h := b.holders(i, "k"); len(h) != 1 || h[0].Left > 24*time.Second || h[0].Left < 23*time.Second {
				t.Errorf("store %d is held by %v, want the long reader for its own 24 s", i, h)
			}
		}
	})
}

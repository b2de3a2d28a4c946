package quorum_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// The case for which the highest counter alone is no token: which stores answer
// changes from one acquisition to the next, some acquisitions fail halfway, and
// the counters of the stores drift apart.
func TestF001TokensGrowOverRandomQuorums(t *testing.T) {
	for seed := range uint64(20) {
		inBubble(t, 5, func(t *testing.T, b *bed) {
			random := rand.New(rand.NewPCG(seed, 0))
			clients := []*quorum.Locker{b.locker(), b.locker(), b.locker()}
			last, won, failed := int64(0), 0, 0
			for range 200 {
				for _, sp := range b.spoil {
					sp.Set()
					if random.IntN(10) < 4 {
						sp.Set(storetest.Always(storetest.Fail(nil)))
					}
				}
				lease, err := clients[random.IntN(len(clients))].TryAcquire(t.Context(), "k", quorum.TTL(time.Second))
				if err != nil {
					if !errors.Is(err, quorum.ErrNoQuorum) {
						t.Fatalf("seed %d: %v", seed, err)
					}
					failed++
					continue
				}
				won++
				if lease.Token() <= last {
					t.Fatalf("seed %d: token %d after %d", seed, lease.Token(), last)
				}
				last = lease.Token()
				_ = lease.Release(t.Context())
				time.Sleep(2 * time.Second) // what a failing store kept runs out
			}
			if won < 50 || failed < 20 {
				t.Errorf("seed %d: %d acquisitions and %d failures show little", seed, won, failed)
			}
		})
	}
}

// A holds stores 1 and 2 of 3. Store 2 restarts empty: with 3, which never had
// a vote of A's, it would make a quorum for a rival.
func TestR46RestartedMemberLetsNoRivalIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, 3, quorum.Consensus(), memstore.Forgetful())
		holder, rival := b.locker(), b.locker()
		order := b.ask("k")
		first, second, third := order[0], order[1], order[2]
		b.spoil[third].Set(storetest.Always(storetest.Fail(nil)))
		lease := must(t, holder, "k", quorum.TTL(30*time.Second), quorum.NoRenew())
		b.spoil[third].Set()
		b.memory[second].Restart(false)

		if _, err := rival.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Errorf("with all three answering: %v, want ErrHeld", err)
		}
		b.spoil[first].Set(storetest.Always(storetest.Fail(nil)))
		if _, err := rival.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrNoQuorum) {
			t.Errorf("with the one that remembers silent: %v, want ErrNoQuorum", err)
		}
		if err := lease.Err(); err != nil {
			t.Fatalf("the holder lost the lock: %v", err)
		}
		b.spoil[first].Set()
		time.Sleep(time.Minute + time.Second) // MaxTTL; the lease ran out meanwhile
		b.spoil[first].Set(storetest.Always(storetest.Fail(nil)))
		next := must(t, rival, "k", quorum.Wait(time.Minute))
		if next.Token() <= lease.Token() {
			t.Errorf("token %d after %d", next.Token(), lease.Token())
		}
	})
}

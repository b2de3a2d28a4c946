package quorum_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// apart is a store whose counters run away from those of the others: with every
// release by another number, as after votes that were given and given up.
type apart struct {
	*memstore.Store
	n atomic.Int64
}

func (a *apart) Release(ctx context.Context, r quorum.Request) error {
	raise := r
	raise.TTL, raise.Floor = time.Second, 0
	if g, err := a.Extend(ctx, raise); err == nil {
		raise.Floor = g.Token + a.n.Add(5)%11
		if _, err := a.Extend(ctx, raise); err != nil {
			return err
		}
	}
	return a.Store.Release(ctx, r)
}

// TestR13AHandOffTakesTwoRoundTrips counts them, by calls of a fixed length: the
// release brings the turn, and with turns in a quorum the next in line asks for
// all votes at once. Nobody else is given them, so that no vote splits. The
// turns told the counters, so that no token is written back, unless a store
// beyond the quorum turns out to be ahead.
func TestR13AHandOffTakesTwoRoundTrips(t *testing.T) {
	for _, stores := range []int{1, 3, 5} {
		for _, order := range []quorum.Order{quorum.InOrder, quorum.FirstThenRest, quorum.AllAtOnce} {
			for _, differ := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d stores, %v, counters differ: %v", stores, order, differ), func(t *testing.T) {
					inBubble(t, stores, func(t *testing.T, b *bed) { b.twoTrips(order, differ) })
				})
			}
		}
	}
}

func (b *bed) twoTrips(order quorum.Order, differ bool) {
	const workers, rounds, trip, hold = 8, 20, 2 * time.Millisecond, time.Millisecond
	b.far()
	for i, sp := range b.spoil {
		if differ {
			store := &apart{Store: b.memory[i]}
			store.n.Store(int64(3 * i))
			sp.Replace(store)
		}
	}
	all := b.turns(workers, workers*rounds, hold, quorum.AskOrder(order))[2*workers:] // by then all stand in line
	most := 2 * trip
	if differ { // one more for each store beyond the quorum that is ahead of those before
		most += trip * time.Duration(len(b.spoil)/2)
	}
	var took []time.Duration
	for i, h := range all {
		if took = append(took, h.took); h.took > most {
			b.t.Errorf("hand-off %d took %v, with round trips of %v", i, h.took, trip)
		}
		if h.from == h.to {
			b.t.Errorf("hand-off %d went to who had it", i)
		}
	}
	slices.Sort(took)
	if half := took[len(took)/2]; half > 2*trip {
		b.t.Errorf("half of the hand-offs took %v and more, want two round trips of %v", half, trip)
	}
	late, verbs := 0, storetest.Verbs(storetest.VerbAcquire, storetest.VerbExtend, storetest.VerbRelease)
	for _, sp := range b.spoil {
		steady := func(c storetest.Call) bool { return c.At.After(all[0].at) && verbs(c) }
		if calls := float64(len(sp.Log(steady))) / float64(len(all)); calls > 3.3 && !differ && order != quorum.AllAtOnce {
			b.t.Errorf("%.2f calls a store and acquisition", calls)
		}
		late += len(sp.Log(func(c storetest.Call) bool { return steady(c) && c.Verb == storetest.VerbExtend }))
	}
	if late > 0 && !differ {
		b.t.Errorf("%d tokens were written back", late)
	}
}

// handOff is how a lock went from one worker to the next.
type handOff struct {
	at       time.Time
	from, to int
	took     time.Duration // from the call of Release to the return of Acquire
}

// turns has workers, each as if a process of its own, take one lock again and
// again, and returns its n hand-offs.
func (b *bed) turns(workers, n int, hold time.Duration, options ...quorum.Option) []handOff {
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	var mu sync.Mutex
	var all []handOff
	last, left := -1, time.Time{}
	var work sync.WaitGroup
	for i := range workers {
		l := b.locker(options...)
		work.Go(func() {
			for {
				lease, err := l.Acquire(ctx, "k")
				if err != nil {
					return
				}
				mu.Lock()
				if last >= 0 {
					all = append(all, handOff{time.Now(), last, i, since(left)})
				}
				if len(all) == n {
					cancel()
				}
				mu.Unlock()
				<-time.After(hold)
				mu.Lock()
				last, left = i, time.Now()
				mu.Unlock()
				_ = lease.Release(b.t.Context())
			}
		})
	}
	work.Wait()
	return slices.Clip(all)
}

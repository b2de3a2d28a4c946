package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// nodes is how many stores a zone of a nest has.
const nodes = 3

// inNestedBubble runs f with a majority of three zones, each a majority of three
// stores: zone z has the bed's stores 3z to 3z+2.
func inNestedBubble(t *testing.T, f func(t *testing.T, b *bed), options ...memstore.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{t: t}
		var zones []quorum.Store
		for z := range 3 {
			var members []quorum.Store
			for n := range nodes {
				m := memstore.New(fmt.Sprintf("%c%d", 'a'+z, n), append(options, memstore.WithClock(clock.Go()))...)
				sp := storetest.Spoil(m)
				t.Cleanup(sp.Close)
				b.memory, b.spoil, members = append(b.memory, m), append(b.spoil, sp), append(members, sp)
			}
			zones = append(zones, mustCombine(t, quorum.Consensus(), members...))
		}
		b.set = mustCombine(t, quorum.Consensus(), zones...)
		f(t, b)
	})
}

// zone returns a zone's stores.
func (b *bed) zone(z int) []*storetest.Spoiled { return b.spoil[z*nodes : (z+1)*nodes] }

func TestR36QuorumOfQuorums(t *testing.T) {
	inNestedBubble(t, func(t *testing.T, b *bed) {
		l := b.locker()
		last := int64(0)
		for range 5 {
			lease := must(t, l, "k")
			b.settle()
			if lease.Token() <= last || b.held("k") < 6 {
				t.Fatalf("token %d after %d, held by %d of 9 nodes, want 6 at least", lease.Token(), last, b.held("k"))
			}
			last = lease.Token()
			if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
				t.Errorf("a second owner got %v, want ErrHeld", err)
			}
			if err := lease.Extend(t.Context(), 30*time.Second); err != nil {
				t.Errorf("Extend: %v", err)
			}
			within(t, "what is left", lease.Remaining(), 29*time.Second, 30*time.Second)
			time.Sleep(time.Minute) // renewed meanwhile
			if lease.Err() != nil || lease.Token() != last {
				t.Fatalf("after a minute: %v, token %d, want %d", lease.Err(), lease.Token(), last)
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Errorf("Release: %v", err)
			}
			b.settle()
			b.checkEmpty("k")
		}
	})
}

func TestR36MinorityZoneDown(t *testing.T) {
	// One zone is away, and one node in each of the others: 4 of 9 nodes remain
	// to fail before the lock does.
	for name, fault := range map[string]storetest.Fault{"refuse": storetest.Fail(nil), "hang": storetest.Hang(), "ignore their context": storetest.Freeze()} {
		t.Run(name, func(t *testing.T) {
			inNestedBubble(t, func(t *testing.T, b *bed) {
				for _, sp := range append(b.zone(1), b.spoil[0], b.spoil[8]) {
					sp.Set(storetest.Always(fault))
				}
				l := b.locker(quorum.TTL(10*time.Second), quorum.CallLimit(time.Second))
				lease := must(t, l, "k")
				time.Sleep(time.Minute)
				if err := lease.Err(); err != nil {
					t.Fatalf("after a minute with a zone away: %v", err)
				}
				next := lease.Token()
				if err := lease.Release(t.Context()); err != nil {
					t.Errorf("Release with a zone away: %v", err)
				}
				lease = must(t, l, "k")
				if lease.Token() <= next {
					t.Errorf("token %d after %d", lease.Token(), next)
				}
			})
		})
	}
}

func TestR41VotesOfZonesCarryTheirNodes(t *testing.T) {
	inNestedBubble(t, func(t *testing.T, b *bed) {
		down := errors.New("connection refused")
		for i, sp := range b.spoil {
			if i%nodes != 0 {
				sp.Set(storetest.Always(storetest.Fail(down)))
			}
		}
		_, err := b.locker().TryAcquire(t.Context(), "k")
		op := (*quorum.OpError)(nil)
		if !errors.As(err, &op) || !errors.Is(err, quorum.ErrNoQuorum) || !errors.Is(err, down) {
			t.Fatalf("two nodes of every zone are away: %v", err)
		}
		first := b.ask("k")[0]
		votes := op.Votes[first].Votes
		if op.Votes[first].Outcome != quorum.OutcomeUnknown || len(votes) != nodes {
			t.Fatalf("the vote of the zone asked first is %+v, want an unknown one with its %d nodes", op.Votes[first], nodes)
		}
		granted := 0
		for _, v := range votes {
			if v.Outcome == quorum.OutcomeGranted {
				granted++
			}
		}
		b.settle()
		b.checkEmpty("k")
		lease := must(t, healed(b).locker(), "k")
		b.settle() // the third zone is repaired
		for z, v := range lease.Votes() {
			if v.Outcome != quorum.OutcomeGranted || len(v.Votes) != nodes {
				t.Errorf("vote of zone %d is %+v, want granted, with its nodes", z, v)
			}
		}
		if granted > 1 {
			t.Errorf("%d nodes of a zone with two nodes down granted", granted)
		}
	})
}

// healed lets every store work again.
func healed(b *bed) *bed {
	for _, sp := range b.spoil {
		sp.Set()
	}
	return b
}

func TestCompositeNeverRollsBackByItself(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		order := b.ask("k")
		b.spoil[order[1]].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Hang()))
		b.spoil[order[2]].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.DropReply(nil)))
		r := b.request("k")
		r.Owner.ID[0], r.Owner.Attempt = 7, 1
		_, err := b.set.Acquire(t.Context(), r)
		if err == nil || quorum.OutcomeOf(err) != quorum.OutcomeUnknown {
			t.Fatalf("one granted, one hangs, one lost its reply: %v, want an unknown outcome", err)
		}
		b.settle()
		if n := b.calls(storetest.VerbRelease); n != 0 || b.held("k") != 2 {
			t.Errorf("%d releases by itself, %d stores hold; want none, and both votes left to who called", n, b.held("k"))
		}
		healed(b)
		if err := b.set.Release(t.Context(), r); err != nil {
			t.Errorf("the caller's Release: %v", err)
		}
		b.checkEmpty("k")
		for i, sp := range b.spoil {
			calls := sp.Log(storetest.Verbs(storetest.VerbRelease))
			if len(calls) != 1 || !calls[0].Request.Entomb {
				t.Errorf("store %d got %d releases, want one that entombs: %v", i, len(calls), calls)
			}
		}
	})
	t.Run("a refusal is never clean", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			b.rival("k", time.Second, 0, 1, 2)
			r := b.request("k")
			r.Owner.ID[0], r.Owner.Attempt = 7, 1
			_, err := b.set.Acquire(t.Context(), r)
			refused := (*quorum.RefusedError)(nil)
			if !errors.As(err, &refused) || !errors.Is(err, quorum.ErrHeld) || refused.Clean {
				t.Errorf("a contended composite answered %#v, want ErrHeld, not clean", err)
			}
			if refused.Label != "a rival" || refused.Left != time.Second {
				t.Errorf("it says the holder is %q for %v, want the rival for 1s", refused.Label, refused.Left)
			}
		})
	})
}

func TestD2FailedZoneIsRolledBackByTheLocker(t *testing.T) {
	// A zone whose nodes granted and could not say so, while the others are held.
	inNestedBubble(t, func(t *testing.T, b *bed) {
		order := b.ask("k")
		for _, sp := range b.zone(order[0]) {
			sp.Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.DropReply(nil)))
		}
		for _, z := range order[1:] {
			b.rival("k", time.Minute, z*nodes, z*nodes+1, z*nodes+2)
		}
		if _, err := b.locker().TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrHeld) {
			t.Fatalf("one zone lost its replies, two are held: %v", err)
		}
		b.settle()
		for n := range nodes {
			if h := b.holders(order[0]*nodes+n, "k"); len(h) > 0 {
				t.Errorf("node %d of the zone still holds %+v", n, h)
			}
		}
	})
}

func TestCompositeUsesNoClockOfTheMachine(t *testing.T) {
	// A zone with a frozen node decides by its call limits; in a bubble these
	// pass at the bubble's pace.
	inNestedBubble(t, func(t *testing.T, b *bed) {
		for _, sp := range b.zone(0) {
			sp.Set(storetest.Always(storetest.Freeze()))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		r := b.request("k")
		r.Owner.ID[0], r.Owner.Attempt = 7, 1
		start := time.Now()
		_, err := b.set.Members()[0].Acquire(ctx, r)
		within(t, "a call limited to 1 s", since(start), 400*time.Millisecond, time.Second)
		if err == nil {
			t.Error("a zone of frozen nodes granted")
		}
	})
}

func TestR52ReleaseWithANodeDownInEveryZone(t *testing.T) {
	// A majority of every zone releases: that is enough for the holder, and the
	// nodes that could not are told again when they are back.
	inNestedBubble(t, func(t *testing.T, b *bed) {
		lease := must(t, b.locker(), "k")
		time.Sleep(11 * time.Second) // renewals have repaired every node
		for z := range 3 {
			b.spoil[z*nodes].Set(storetest.Always(storetest.Fail(nil)))
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("Release: %v", err)
		}
		if n := b.held("k"); n != 3 {
			t.Fatalf("%d nodes still hold it, want the three that are down", n)
		}
		time.Sleep(time.Second)
		healed(b)
		time.Sleep(1500 * time.Millisecond)
		b.checkEmpty("k")
	})
}

package quorum_test

import (
	"errors"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// One of five nodes hangs. The first acquisition that asks it finds out within
// what its answers took lately, the others do not wait for it at all, and once
// it is back it gets votes again.
func TestHangingStoreCostsTheFirstAndNobodyElse(t *testing.T) {
	inBubble(t, 5, func(t *testing.T, b *bed) {
		l := b.locker()
		for range 20 { // what is usual
			if err := must(t, l, "k").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		hangs := b.ask("k")[0]
		b.spoil[hangs].Set(storetest.Always(storetest.Hang()))
		cycle := func() time.Duration {
			start := time.Now()
			if err := must(t, l, "k").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			return since(start)
		}
		within(t, "the first", cycle(), 20*time.Millisecond, 40*time.Millisecond)
		for range 100 {
			within(t, "another", cycle(), 0, 0)
		}
		b.spoil[hangs].Thaw()
		b.spoil[hangs].Set()
		time.Sleep(11 * time.Second)
		must(t, l, "k") // finds out that it is well
		b.settle()
		second := must(t, l, "other")
		b.settle()
		if v := second.Votes()[hangs]; v.Err != nil || b.held("other") != 5 {
			t.Errorf("the store that is back: %+v; %d stores have the name", v, b.held("other"))
		}
	})
}

// A process that has asked nobody yet, as one that lives for a single lock,
// finds out as well, and long before the call's limit.
func TestHangingStoreCostsANewProcessOnePatience(t *testing.T) {
	for place, most := range []time.Duration{400 * time.Millisecond, 400 * time.Millisecond, 200 * time.Millisecond} {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker()
			b.spoil[b.ask("k")[place]].Set(storetest.Always(storetest.Hang()))
			start := time.Now()
			lease := must(t, l, "k")
			got := since(start)
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			within(t, "the first acquire", got, 0, 200*time.Millisecond)
			within(t, "with its release", since(start), 200*time.Millisecond, most)
			start = time.Now()
			if err := must(t, l, "k").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			within(t, "the second", since(start), 0, 0)
		})
	}
}

// In an outage that is known nobody waits for the call's limit again, and the
// end of it is noticed.
func TestKnownOutageFailsSoon(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		for range 20 {
			if err := must(t, l, "k").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range b.ask("k")[:2] {
			b.spoil[i].Set(storetest.Always(storetest.Hang()))
		}
		fails := func() time.Duration {
			start := time.Now()
			if _, err := l.TryAcquire(t.Context(), "k"); !errors.Is(err, quorum.ErrNoQuorum) {
				t.Fatalf("two of three hang: %v", err)
			}
			return since(start)
		}
		within(t, "the first", fails(), time.Second, 1100*time.Millisecond)
		time.Sleep(time.Second)
		within(t, "another", fails(), 200*time.Millisecond, 300*time.Millisecond)
		for _, i := range b.ask("k")[:2] {
			b.spoil[i].Thaw()
			b.spoil[i].Set()
		}
		must(t, l, "k", quorum.Wait(0))
	})
}

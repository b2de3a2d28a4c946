package quorum_test

import (
	"testing"
	"time"

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

package quorum_test

import (
	"fmt"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
)

// The cost of the protocol itself, on stores that answer at once.
func BenchmarkAcquireRelease(b *testing.B) {
	for _, n := range []int{1, 3, 5} {
		b.Run(fmt.Sprintf("stores=%d", n), func(b *testing.B) { acquireRelease(b, locker(b, n)) })
	}
}

// What it costs to watch: nothing when nobody does (R77).
func BenchmarkR77Observed(b *testing.B) {
	for name, options := range map[string][]quorum.Option{"off": nil, "on": {quorum.Observe(func(quorum.Event) {})}} {
		b.Run(name, func(b *testing.B) { acquireRelease(b, locker(b, 3, options...)) })
	}
}

func locker(tb testing.TB, n int, options ...quorum.Option) *quorum.Locker {
	tb.Helper()
	var members []quorum.Store
	for i := range n {
		members = append(members, memstore.New(fmt.Sprint("m", i)))
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		tb.Fatal(err)
	}
	l, err := quorum.New(set, options...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = l.Close(tb.Context()) })
	return l
}

func acquireRelease(b *testing.B, l *quorum.Locker) {
	b.ReportAllocs()
	for b.Loop() {
		lease, err := l.Acquire(b.Context(), "k")
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

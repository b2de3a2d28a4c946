//go:build unix

package acceptance

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Readers has readers of four clients come all the time, and demands that none of
// the writers that come meanwhile waits for more than the readers before it.
func Readers(t *testing.T, open func() *quorum.CombinedStore) {
	t.Helper()
	locker := func() *quorum.Locker {
		return Locker(t, open(), quorum.TTL(30*time.Second), quorum.MaxTTL(30*time.Second))
	}
	writer := locker()
	Poll(t, time.Minute, "the set to be declared new", func() bool { return writer.Init(t.Context()) == nil })
	const readers, writes = 4, 20
	var reads atomic.Int64
	var all sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	for range readers {
		l := locker()
		all.Go(func() {
			for ctx.Err() == nil {
				lease, err := l.Acquire(ctx, "job", quorum.Shared())
				if err == nil {
					reads.Add(1)
					_ = lease.Release(context.WithoutCancel(ctx))
				}
			}
		})
	}
	defer all.Wait()
	defer cancel()
	Poll(t, time.Minute, "readers", func() bool { return reads.Load() > 20 })
	for range writes {
		from := reads.Load()
		lease, err := writer.Acquire(ctx, "job")
		if err != nil {
			t.Fatal(err)
		}
		if n := reads.Load() - from; n > 20*readers {
			t.Errorf("%d readers came in before a writer that waited", n)
		}
		if err := lease.Release(ctx); err != nil {
			t.Error(err)
		}
	}
}

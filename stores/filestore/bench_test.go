package filestore

import (
	"context"
	"testing"

	"github.com/quorumlock/quorum/clock"
)

func BenchmarkAcquireRelease(b *testing.B) {
	s := open(b, newDir(b), clock.System())
	ctx := context.Background()
	for b.Loop() {
		r := request("report")
		if _, err := s.Acquire(ctx, r); err != nil {
			b.Fatal(err)
		}
		if err := s.Release(ctx, r); err != nil {
			b.Fatal(err)
		}
	}
}

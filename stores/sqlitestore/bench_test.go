//go:build linux

package sqlitestore

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/acceptance"
)

func BenchmarkAcquireRelease(b *testing.B) {
	for _, journal := range journals {
		b.Run(journal, func(b *testing.B) {
			path := newPath(b)
			run(b, database(b, path, journal), "CREATE TABLE of_another (x)")
			s := open(b, world(b, clock.System()), path)
			acceptance.DeclareNew(b, s, request(""))
			for b.Loop() {
				pair(b, s, "report")
			}
		})
	}
}

func BenchmarkFourProcesses(b *testing.B) {
	s := fresh(b, clock.System())
	b.Setenv("SQLITESTORE_TEST_CYCLES", strconv.Itoa(b.N/4+1))
	b.ResetTimer()
	var wait []func() error
	for range 4 {
		cmd, _ := start(b, "cycle", s.file.path)
		wait = append(wait, cmd.Wait)
	}
	for _, w := range wait {
		if err := w(); err != nil {
			b.Error(err)
		}
	}
}

// cycle takes a lock of its own as often as the environment says.
func cycle(ctx context.Context, s *Store) error {
	n, err := strconv.Atoi(os.Getenv("SQLITESTORE_TEST_CYCLES"))
	for range n {
		r := request(fmt.Sprint("report ", os.Getpid()))
		if err == nil {
			_, err = s.Acquire(ctx, r)
		}
		if err == nil {
			err = s.Release(ctx, r)
		}
	}
	return err
}

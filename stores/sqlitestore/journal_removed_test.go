//go:build linux

package sqlitestore

import (
	"io"
	"os"
	"testing"

	"github.com/quorumlock/quorum/clock"
)

// TestR46JournalRemovedWhileHeld: somebody clears away *-wal and *-shm, and the
// next process that opens the file makes others. Whoever had it open finds out,
// instead of going on beside that one.
func TestR46JournalRemovedWhileHeld(t *testing.T) {
	s := fresh(t, clock.System())
	r, _ := acquire(t, s, "report")
	for _, end := range []string{"-wal", "-shm"} {
		if err := os.Remove(s.file.path + end); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Extend(t.Context(), r)
	wantFailure(t, err, errJournal, s.file.path)
	t.Setenv("SQLITESTORE_TEST_CYCLES", "1")
	cmd, out := start(t, "cycle", s.file.path)
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	_, err = s.Extend(t.Context(), r)
	wantFailure(t, err, errJournal, s.file.path)
}

//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Processes of this machine exclude one another by a SQLite file, from when it
// was declared new.
func TestR62SQLiteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "locks.db")
	set := "sqlite:" + path
	r := run(t, set, "run", "--wait", "0", "key", "--", "true").expect(codeOutage)
	if !strings.Contains(r.stderr.String(), "quorum init") {
		t.Errorf("a new file: %s, want the way on", r.stderr)
	}
	run(t, set, "init", "--yes").expect(0)
	r = hold(t, set, "key")
	run(t, set, "run", "--try", "key", "--", "true").expect(codeContention)
	if s := run(t, set, "status", "key").expect(codeContention); !strings.Contains(s.stdout.String(), "sqlite://"+path) {
		t.Errorf("status:\n%s", s.stdout)
	}
	r.signal(syscall.SIGTERM)
	r.expect(codeSignal + int(syscall.SIGTERM))
	run(t, set, "run", "--try", "key", "--", "true").expect(0)
	// The same file under two names is one vote.
	run(t, set+"?name=a sqlite://"+path+"?name=b", "run", "--wait", "0", "key", "--", "true").expect(codeMismatch)
}

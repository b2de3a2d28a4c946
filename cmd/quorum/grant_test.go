//go:build unix

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// TestF047R66SignalAroundTheGrantLeavesNothing sends SIGINT around the moment
// at which a contended key is granted. QUORUM_TEST_ROUNDS=500 sets how often;
// by default it is as often as 15 seconds allow.
func TestF047R66SignalAroundTheGrantLeavesNothing(t *testing.T) {
	rounds, limit := 500, time.Now().Add(15*time.Second)
	if n, err := strconv.Atoi(setting("QUORUM_TEST_ROUNDS")); err == nil {
		rounds, limit = n, time.Now().Add(time.Hour)
	}
	_ = os.Unsetenv("QUORUM_TEST_ROUNDS") // quorum warns of what it does not read
	set := stores(t)
	store, err := openStores(t.Context(), []string{strings.Replace(set, "file:", "file://", 1)})
	if err != nil {
		t.Fatal(err)
	}
	locks, err := quorum.New(store)
	if err != nil {
		t.Fatal(err)
	}
	defer locks.Close(t.Context())
	random := rand.New(rand.NewPCG(47, 0))
	marks := t.TempDir()
	started, done := 0, 0
	for ; done < rounds && time.Now().Before(limit) && !t.Failed(); done++ {
		mark := filepath.Join(marks, fmt.Sprint(done))
		mine, err := locks.TryAcquire(t.Context(), "key")
		if err != nil {
			t.Fatalf("round %d: the key was left behind: %v", done, err)
		}
		waiter := begin(t, set, "run", "key", "--", "sh", "-c", "echo $$ >"+mark+"; exec sleep 1000")
		time.Sleep(time.Duration(random.Int64N(int64(30 * time.Millisecond))))
		if err := mine.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.Int64N(int64(35 * time.Millisecond))))
		waiter.signal(syscall.SIGINT)
		waiter.wait()
		state := waiter.ProcessState.Sys().(syscall.WaitStatus)
		if code := exitCode(state); code != 130 {
			t.Errorf("round %d: code %d, want 130\n%s", done, code, waiter.stderr)
		}
		text, err := os.ReadFile(mark)
		if err != nil {
			continue
		}
		started++
		if pid, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && alive(pid) {
			t.Errorf("round %d: the command outlived quorum", done)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	t.Logf("%d rounds, in %d the command was started", done, started)
	if started == 0 || started == done {
		t.Errorf("in %d of %d rounds the command was started: the signals did not meet the grant", started, done)
	}
}

package redisstore_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/redisstore/internal/trial"
)

// serverClock is the calendar clock of a server.
type serverClock = trial.Clock

// stoppedRedis is a real server whose clock stands still. Its own timers, which
// use another clock, go on.
func stoppedRedis(t *testing.T, options ...testserver.RedisOption) (*testserver.RedisNode, *serverClock) {
	t.Helper()
	library := clockLibrary(t)
	setting := filepath.Join(t.TempDir(), "clock")
	file, err := os.OpenFile(setting, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	c := &serverClock{Now: trial.Noon}
	c.Move = func(to time.Time, _ time.Duration) {
		page := binary.NativeEndian.AppendUint64(nil, 0)
		page = binary.NativeEndian.AppendUint64(page, uint64(to.UnixNano()))
		if _, err := file.WriteAt(page, 0); err != nil { // one write: the server sees both numbers or neither
			t.Fatal(err)
		}
	}
	c.Move(c.Now, 0)
	options = append(options, testserver.RedisEnv("LD_PRELOAD="+library, "CLOCK_FILE="+setting))
	node := testserver.Redis(t, options...)
	seen, err := client(t, node.Addr).Time(t.Context()).Result()
	if err != nil || !seen.Equal(trial.Noon) {
		t.Fatalf("the server reads %v (%v), not the time it was given", seen, err)
	}
	return node, c
}

// clockLibrary compiles testdata/clock.c, once.
var clockLibrary = func() func(*testing.T) string {
	var once sync.Once
	var library string
	var text []byte
	var err error
	return func(t *testing.T) string {
		t.Helper()
		once.Do(func() {
			var dir string
			if dir, err = os.MkdirTemp("", "redisstore-clock"); err != nil {
				return
			}
			atExit = append(atExit, func() { _ = os.RemoveAll(dir) })
			library = filepath.Join(dir, "clock.so")
			text, err = exec.Command("cc", "-shared", "-fPIC", "-O2", "-o", library, "testdata/clock.c").CombinedOutput()
		})
		if err != nil {
			t.Fatalf("compile testdata/clock.c (apt-get install -y gcc libc6-dev): %v\n%s", err, text)
		}
		return library
	}
}()

var atExit []func()

func TestMain(m *testing.M) {
	code := m.Run()
	for _, f := range atExit {
		f()
	}
	os.Exit(code)
}

// keysOf lists all keys of a server.
func keysOf(t *testing.T, c *redis.Client) []string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

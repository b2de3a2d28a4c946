package redisstore_test

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum/internal/testserver"
)

// serverClock is the calendar clock of a server, which stands still until it is
// moved.
type serverClock struct {
	now  time.Time
	move func(to time.Time, by time.Duration)
}

func (c *serverClock) advance(d time.Duration) {
	c.now = c.now.Add(d)
	c.move(c.now, d)
}

// noon is some whole millisecond, away from the end of a step.
var noon = time.UnixMilli(1_764_000_060_000)

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
	c := &serverClock{now: noon}
	c.move = func(to time.Time, _ time.Duration) {
		page := binary.NativeEndian.AppendUint64(nil, 0)
		page = binary.NativeEndian.AppendUint64(page, uint64(to.UnixNano()))
		if _, err := file.WriteAt(page, 0); err != nil { // one write: the server sees both numbers or neither
			t.Fatal(err)
		}
	}
	c.move(c.now, 0)
	options = append(options, testserver.RedisEnv("LD_PRELOAD="+library, "CLOCK_FILE="+setting))
	node := testserver.Redis(t, options...)
	seen, err := client(t, node.Addr).Time(t.Context()).Result()
	if err != nil || !seen.Equal(noon) {
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

// stoppedMiniredis is an embedded server whose clock stands still. Its keys do
// not expire by the clock, so its clock cannot go back.
func stoppedMiniredis(t *testing.T) (*miniredis.Miniredis, *serverClock) {
	t.Helper()
	m := miniredis.RunT(t)
	m.SetTime(noon)
	return m, &serverClock{now: noon, move: func(to time.Time, by time.Duration) {
		m.SetTime(to)
		m.FastForward(by)
	}}
}

// memory returns what a server uses for its data.
func keysOf(t *testing.T, c *redis.Client) []string {
	t.Helper()
	keys, err := c.Keys(t.Context(), "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

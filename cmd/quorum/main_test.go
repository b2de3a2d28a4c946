//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/testserver"
)

// binary is the command, built once and run for real by the tests.
var binary string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

// setting is a variable of the tests' own, read before testMain clears them.
func setting(name string) string { return settings[name] }

var settings = map[string]string{}

func testMain(m *testing.M) int {
	// The command warns of variables that it does not read, so those of the
	// tests must not reach it.
	for _, v := range os.Environ() {
		if name, value, _ := strings.Cut(v, "="); strings.HasPrefix(name, "QUORUM_") {
			settings[name] = value
			_ = os.Unsetenv(name)
		}
	}
	// A shell that started the tests in the background may have had SIGINT
	// ignored, and quorum would go on ignoring it.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGQUIT, syscall.SIGHUP)
	dir, err := os.MkdirTemp("", "quorum")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "quorum")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the command: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// buffer may be read while a process writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// running is a quorum that was started.
type running struct {
	*exec.Cmd
	t              *testing.T
	stdout, stderr *buffer
	ended          chan struct{}
	began          time.Time
	took           time.Duration
	code           int
}

// stores is a file store of the test's own, in the form of QUORUM_STORES.
func stores(t *testing.T) string { return "file:" + filepath.Join(t.TempDir(), "locks") }

// newRedisSet starts redis servers, declares them new, and returns them and
// their DSNs in the form of QUORUM_STORES.
func newRedisSet(t *testing.T, count int) ([]*testserver.RedisNode, string) {
	t.Helper()
	var nodes []*testserver.RedisNode
	var dsns []string
	for i := range count {
		n := testserver.Redis(t)
		nodes = append(nodes, n)
		dsns = append(dsns, fmt.Sprintf("redis://%s/0?name=%c", n.Addr, 'a'+i))
	}
	set := strings.Join(dsns, " ")
	if r := run(t, set, "init", "--yes"); r.code != 0 {
		t.Fatalf("quorum init: code %d\n%s", r.code, r.stderr)
	}
	return nodes, set
}

// begin starts quorum with stores in the environment.
func begin(t *testing.T, set string, args ...string) *running {
	t.Helper()
	r := &running{
		Cmd: exec.Command(binary, args...), t: t, stdout: &buffer{}, stderr: &buffer{}, ended: make(chan struct{}), code: -1,
	}
	r.Env = append(os.Environ(), storesVariable+"="+set)
	r.Stdout, r.Stderr = r.stdout, r.stderr
	r.WaitDelay = 100 * time.Millisecond // a daemon may keep the output open
	r.start()
	return r
}

func (r *running) start() {
	r.t.Helper()
	r.began = time.Now()
	if err := r.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(r.ended)
		err := r.Wait()
		r.took = time.Since(r.began)
		r.code = r.ProcessState.ExitCode()
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) && r.code == 0 {
			r.code = -1
		}
	}()
	r.t.Cleanup(func() {
		select {
		case <-r.ended:
		default:
			_ = r.Process.Kill()
			<-r.ended
		}
	})
}

// wait waits for the end.
func (r *running) wait() *running {
	r.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(time.Minute):
		r.t.Fatalf("quorum %s has not ended after a minute\n%s", strings.Join(r.Args[1:], " "), r.stderr)
	}
	return r
}

// run runs quorum to its end.
func run(t *testing.T, set string, args ...string) *running {
	t.Helper()
	return begin(t, set, args...).wait()
}

// expect checks the exit code.
func (r *running) expect(code int) *running {
	r.t.Helper()
	if r.wait(); r.code != code {
		r.t.Errorf("quorum %s: code %d, want %d\nstdout: %s\nstderr: %s",
			strings.Join(r.Args[1:], " "), r.code, code, r.stdout, r.stderr)
	}
	return r
}

func (r *running) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// eventually polls a condition that other processes bring about.
func eventually(t *testing.T, within time.Duration, what string, met func() bool) {
	t.Helper()
	for end := time.Now().Add(within); !met(); {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", within, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// hold starts a quorum that holds key until it is told to end, and waits until
// its command runs.
func hold(t *testing.T, set, key string, flags ...string) *running {
	t.Helper()
	args := append([]string{"run"}, flags...)
	r := begin(t, set, append(args, key, "--", "sh", "-c", "echo started; exec sleep 1000")...)
	eventually(t, 10*time.Second, "the holder's command runs\n"+r.stderr.String(), func() bool {
		return strings.Contains(r.stdout.String(), "started")
	})
	return r
}

// free checks that nobody holds key long before a TTL of 15 s is over.
func free(t *testing.T, set, key string) {
	t.Helper()
	eventually(t, 10*time.Second, key+" is free", func() bool { return run(t, set, "status", key).code == 0 })
}

// pids reads numbers of processes that a command wrote to a file.
func pids(t *testing.T, file string, count int) []int {
	t.Helper()
	var found []int
	eventually(t, 10*time.Second, fmt.Sprintf("%d processes in %s", count, file), func() bool {
		text, _ := os.ReadFile(file)
		found = nil
		for _, word := range strings.Fields(string(text)) {
			if pid, err := strconv.Atoi(word); err == nil {
				found = append(found, pid)
			}
		}
		return len(found) == count
	})
	t.Cleanup(func() {
		for _, pid := range found {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return found
}

// alive reports whether a process runs; a zombie does not.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return errors.Is(err, os.ErrNotExist) && syscall.Kill(pid, 0) == nil
	}
	rest := stat[bytes.LastIndexByte(stat, ')')+1:]
	return !bytes.HasPrefix(bytes.TrimSpace(rest), []byte("Z"))
}

// limited is a context for a test's own processes.
func limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

//go:build unix

package testserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bounds on waiting for a server. They only matter when something is wrong, so
// they are generous: the machine may be busy.
const (
	startLimit = 3 * time.Minute
	stopLimit  = 20 * time.Second
	pollEvery  = 5 * time.Millisecond
)

// process is a server's process over its starts and stops. It is used by one
// goroutine at a time.
type process struct {
	t       testing.TB
	name    string           // for messages
	log     string           // file that the server writes to
	command func() *exec.Cmd // a fresh command for every start
	prepare func(*exec.Cmd)  // what is left to set before it starts, or nil
	ready   func() error     // nil once the server serves

	running *os.Process   // nil when stopped
	done    chan struct{} // closed when running has ended
}

// find returns the path of a program. Without it the test fails, and install is
// what the message tells to run.
func find(t testing.TB, program, install string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	text := fmt.Sprintf("%s is not installed and this test needs it: run `make servers` (or `%s`)", program, install)
	if testing.Short() && os.Getenv("CI") == "" {
		t.Skip(text)
	}
	t.Fatal(text)
	return ""
}

// start runs the server and waits until it serves. It reports how it failed.
func (p *process) start() error {
	if p.running != nil {
		return fmt.Errorf("%s is already running", p.name)
	}
	cmd := p.command()
	dieWithParent(cmd)
	if p.prepare != nil {
		p.prepare(cmd)
	}
	started, done := make(chan error), make(chan struct{})
	go func() {
		// The kernel sends the parent-death signal when the *thread* that
		// started the child ends, so this goroutine keeps one for as long as
		// the child lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // that it ended is what counts; killing it is the usual way
		}
		close(done)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.running, p.done = cmd.Process, done
	return p.await()
}

// await polls until the server serves, has ended, or the limit is over.
func (p *process) await() error {
	deadline := time.Now().Add(startLimit)
	for {
		err := p.ready()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			p.running = nil
			return fmt.Errorf("%s ended while starting; its log ends with:\n%s", p.name, p.tail())
		case <-time.After(pollEvery):
		}
		if time.Now().After(deadline) {
			p.end(syscall.SIGKILL)
			return fmt.Errorf("%s did not serve within %v: %w; its log ends with:\n%s", p.name, startLimit, err, p.tail())
		}
	}
}

// end sends a signal and waits until the process is gone; SIGKILL follows when
// it does not heed. A process that is not running is left alone.
func (p *process) end(sig syscall.Signal) {
	p.t.Helper()
	if p.running == nil {
		return
	}
	_ = p.running.Signal(sig) // fails only if it has ended already
	select {
	case <-p.done:
	case <-time.After(stopLimit):
		_ = p.running.Kill()
		<-p.done
		p.t.Errorf("%s did not end within %v of %v and was killed", p.name, stopLimit, sig)
	}
	p.running = nil
}

// signal sends a signal to a running server.
func (p *process) signal(sig syscall.Signal) {
	p.t.Helper()
	if p.running == nil {
		p.t.Fatalf("%s is not running: it cannot get %v", p.name, sig)
	}
	if err := p.running.Signal(sig); err != nil {
		p.t.Fatalf("send %v to %s: %v", sig, p.name, err)
	}
}

// Stop kills the server as kill -9 does: nothing is saved, and clients see
// their connections closed.
func (p *process) Stop() {
	p.t.Helper()
	p.end(syscall.SIGKILL)
}

// Restart starts the server again at the same address with what it had on
// disk. One that still runs is killed first.
func (p *process) Restart() {
	p.t.Helper()
	p.Stop()
	if err := p.start(); err != nil {
		p.t.Fatal(err)
	}
}

// Stall stops the process from running, as a long pause of its machine would:
// connections stay open and nothing is answered.
func (p *process) Stall() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	p.stopped()
}

// Resume ends a Stall. Requests that came meanwhile are then served.
func (p *process) Resume() {
	p.t.Helper()
	p.signal(syscall.SIGCONT)
}

// Log returns the end of the server's log.
func (p *process) Log() string { return p.tail() }

// stopped returns when every thread of the server has heeded a SIGSTOP: one that
// runs on for a moment may still answer. Only Linux tells.
func (p *process) stopped() {
	p.t.Helper()
	for end := time.Now().Add(stopLimit); ; <-time.After(pollEvery) {
		stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.running.Pid))
		runs := false
		for _, stat := range stats {
			text, err := os.ReadFile(stat)
			_, state, _ := strings.Cut(string(text), ") ")
			runs = runs || err == nil && !strings.HasPrefix(state, "T")
		}
		if !runs {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s did not stop within %v", p.name, stopLimit)
		}
	}
}

// tail returns the end of the server's log.
func (p *process) tail() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}

// freePort returns a loopback port that was free a moment ago. Somebody may
// take it before the server does, so the first start of a server is tried with
// several.
func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free loopback port: %v", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// findBuilt returns the path of a program that scripts/servers builds into the
// repository's cache.
func findBuilt(t testing.TB, program string) string {
	t.Helper()
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".cache", "bin", program)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	text := fmt.Sprintf("%s was not built and this test needs it: run `make servers`", program)
	if testing.Short() && os.Getenv("CI") == "" {
		t.Skip(text)
	}
	t.Fatal(text)
	return ""
}

//go:build unix

package main

import (
	"errors"
	"runtime"
	"sync"
	"syscall"
)

// child is a running command in a process group of its own.
type child struct {
	tty     *terminal // nil when quorum does not have the terminal
	ended   chan syscall.WaitStatus
	gone    chan struct{}
	stopped chan struct{}

	mu   sync.Mutex
	pid  int  // also the number of its process group
	dead bool // it was waited for: its number may be another process's soon
}

// start runs a program with quorum's own standard files. Every other
// descriptor of quorum is close-on-exec, so the command inherits none.
//
// The goroutine keeps its thread until the end, because the kernel sends the
// parent-death signal when the *thread* that forked ends. The same goroutine
// waits for every child of this process: orphans that came to quorum, as to
// the init process of a container or a subreaper, are collected here, and
// nobody else can take the command's own status.
func start(path string, argv, env []string, tty *terminal) (*child, error) {
	c := &child{
		tty:     tty,
		ended:   make(chan syscall.WaitStatus, 1),
		gone:    make(chan struct{}),
		stopped: make(chan struct{}, 1),
	}
	adoptOrphans()
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
			Env:   env,
			Files: []uintptr{0, 1, 2},
			Sys:   attributes(tty),
		})
		c.pid = pid
		started <- err
		if err == nil {
			c.wait()
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	if tty != nil {
		tty.allowBackground()
	}
	return c, nil
}

// wait collects children until none is left.
func (c *child) wait() {
	defer close(c.gone)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD
			return
		case pid != c.pid:
		case status.Stopped():
			select {
			case c.stopped <- struct{}{}:
			default: // one is waiting to be seen
			}
		default:
			c.mu.Lock()
			c.dead = true
			c.mu.Unlock()
			if c.tty != nil {
				c.tty.take()
			}
			c.ended <- status
		}
	}
}

func (c *child) Ended() <-chan syscall.WaitStatus { return c.ended }
func (c *child) Gone() <-chan struct{}            { return c.gone }
func (c *child) Stopped() <-chan struct{}         { return c.stopped }

// Command signals the command alone. A number is reused only after all others
// were, so the moment between the kernel's freeing it and dead does no harm.
func (c *child) Command(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.dead {
		_ = syscall.Kill(c.pid, sig)
	}
}

// Group signals the process group, which outlives the command as long as
// somebody is in it.
func (c *child) Group(sig syscall.Signal) { _ = syscall.Kill(-c.pid, sig) }

// All signals the group and every descendant outside it that can be found.
func (c *child) All(sig syscall.Signal) {
	c.Group(sig)
	for _, pid := range descendants() {
		_ = syscall.Kill(pid, sig)
	}
}

// Suspend stops quorum as the job was stopped, so that the shell sees its job
// stop and gives its prompt. Without a terminal nobody would resume quorum:
// then it goes on, and renews for a command that stands still.
func (c *child) Suspend() bool {
	if c.tty == nil {
		return false
	}
	c.tty.take()
	c.tty.stopSelf()
	return true
}

// Resume lets the job go on, in the foreground if quorum is.
func (c *child) Resume() {
	if c.tty != nil {
		c.tty.give(c.pid)
	}
	c.Group(syscall.SIGCONT)
}

//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is the controlling terminal of quorum's session. Its foreground
// process group gets what is typed: input, Ctrl-C and Ctrl-Z.
type terminal struct {
	file *os.File
	own  int // quorum's process group
}

// controllingTerminal returns nil when there is none, or when quorum is not
// in its foreground: a background job leaves the terminal alone.
func controllingTerminal() *terminal {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil
	}
	t := &terminal{file: file, own: syscall.Getpgrp()}
	if t.foreground() != t.own {
		_ = file.Close()
		return nil
	}
	return t
}

func (t *terminal) foreground() int {
	group, err := unix.IoctlGetInt(int(t.file.Fd()), unix.TIOCGPGRP)
	if err != nil {
		return 0
	}
	return group
}

// allowBackground lets quorum write to the terminal and take it back while
// the command has it. It comes after the fork, since an ignored signal stays
// ignored in a program that is started.
func (t *terminal) allowBackground() { signal.Ignore(syscall.SIGTTOU) }

// take makes quorum's group the foreground again, so that its shell finds the
// terminal as it left it.
func (t *terminal) take() { t.set(t.own) }

// give puts the command's group in the foreground if quorum's is there now: a
// shell may have resumed the job with bg.
func (t *terminal) give(group int) {
	if t.foreground() == t.own {
		t.set(group)
	}
}

// stopSelf stops quorum's process group as Ctrl-Z does. Not by SIGSTOP: that
// would also stop a process that no shell is there to resume.
// SIGTSTP is never caught, because package signal cannot give its default back.
func (t *terminal) stopSelf() { _ = syscall.Kill(0, syscall.SIGTSTP) }

func (t *terminal) set(group int) {
	_ = unix.IoctlSetPointerInt(int(t.file.Fd()), unix.TIOCSPGRP, group)
}

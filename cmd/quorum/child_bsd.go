//go:build unix && !linux

package main

import "syscall"

// attributes puts the command in a process group of its own, in the
// foreground of the terminal if quorum has it. There is no parent-death signal
// here: a command outlives a quorum that is killed with SIGKILL.
func attributes(tty *terminal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if tty != nil {
		a.Foreground, a.Ctty = true, int(tty.file.Fd())
	}
	return a
}

// adoptOrphans does nothing: orphans go to the init process here.
func adoptOrphans() {}

// descendants finds none here: only the process group is known.
func descendants() []int { return nil }

package testserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent makes the kernel kill the server when the test's process ends,
// also by a panic, a time-out or kill -9, where no cleanup runs. The server gets
// a process group of its own, so that Ctrl-C reaches the test and not the server.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

//go:build unix && !linux

package testserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent gives the server a process group of its own. Only Linux can
// also kill it when the test's process dies without a cleanup.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

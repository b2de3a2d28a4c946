//go:build linux

package testserver

import (
	"errors"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

// serverDir makes a directory that the server's user owns, and that goes away
// with the test. t.TempDir lies in folders that only this user may enter.
func serverDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "quorum-server-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if id := serverUser(); id != nil {
		if err := errors.Join(os.Chown(dir, int(id.Uid), int(id.Gid)), os.Chmod(dir, 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// asServerUser makes a command run as a user that is not root: PostgreSQL and
// pgbouncer refuse root.
func asServerUser(cmd *exec.Cmd) {
	if id := serverUser(); id != nil {
		cmd.SysProcAttr.Credential = id
	}
}

// serverUser is nobody in particular when this process is not root anyway.
func serverUser() *syscall.Credential {
	if os.Getuid() != 0 {
		return nil
	}
	id := &syscall.Credential{Uid: 65534, Gid: 65534} // nobody
	if u, err := user.Lookup("postgres"); err == nil {
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		id = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return id
}

package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/internal/platform"
)

func thisMachine() (*machine, error) {
	boot, err := platform.BootID()
	if err != nil {
		return nil, err
	}
	groups, err := os.Getgroups()
	if err != nil {
		return nil, fmt.Errorf("read the groups of this process: %w", err)
	}
	return &machine{
		boot: boot, clock: clock.Machine(), wall: time.Now,
		user: os.Geteuid(), groups: append(groups, os.Getegid()),
		owner: owner, identity: platform.Identity, tryLock: tryLock, network: platform.Network, untouched: untouched,
		sync: (*os.File).Sync,
	}, nil
}

func owner(fi fs.FileInfo) (uid, gid int) {
	st := fi.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid)
}

var lockFlags = map[lockKind]int{
	exclusive: syscall.LOCK_EX | syscall.LOCK_NB,
	shared:    syscall.LOCK_SH | syscall.LOCK_NB,
	unlocked:  syscall.LOCK_UN,
}

// tryLock is flock(2) and not fcntl(2): its locks belong to the open file, so
// that two stores of one process exclude each other, and closing another
// descriptor of the file drops none.
func tryLock(f *os.File, kind lockKind) error {
	for {
		err := syscall.Flock(int(f.Fd()), lockFlags[kind])
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case !errors.Is(err, syscall.EINTR):
			return err
		}
	}
}

// statx is statx(2)'s number, which package syscall does not know.
var statx = map[string]uintptr{
	"386": 383, "amd64": 332, "arm": 397, "arm64": 291, "loong64": 291, "riscv64": 291,
	"ppc64": 383, "ppc64le": 383, "s390x": 379, "mips": 4366, "mipsle": 4366, "mips64": 5326, "mips64le": 5326,
}[runtime.GOARCH]

// untouched compares the time of birth with that of the last change of the
// list of files: equal in a directory just made, earlier in one that came with
// an image. Emptying a directory makes the change later.
func untouched(dir *os.File) (yes, sure bool) {
	const (
		emptyPath = 0x1000
		fields    = 0x40 | 0x800 // change of contents, birth
		birth     = 80           // offsets in struct statx
		modified  = 112
	)
	if statx == 0 {
		return false, false
	}
	var (
		buf  [256]byte
		path [1]byte
	)
	_, _, errno := syscall.Syscall6(statx, dir.Fd(), uintptr(unsafe.Pointer(&path[0])), emptyPath, fields,
		uintptr(unsafe.Pointer(&buf[0])), 0)
	if errno != 0 || binary.NativeEndian.Uint32(buf[:])&fields != fields {
		return false, false
	}
	at := func(offset int) time.Time {
		return time.Unix(int64(binary.NativeEndian.Uint64(buf[offset:])), int64(binary.NativeEndian.Uint32(buf[offset+8:])))
	}
	return !at(modified).After(at(birth)), true
}

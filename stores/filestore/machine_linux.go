package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

func thisMachine() (*machine, error) {
	boot, err := os.ReadFile(bootIDFile)
	id := strings.ReplaceAll(strings.TrimSpace(string(boot)), "-", "")
	if err != nil || !isHex(id) || len(id) != 32 {
		return nil, fmt.Errorf("%w: files without a boot id in %s, since leases of an earlier boot "+
			"could not be told (mount /proc): %w", quorum.ErrUnsupported, bootIDFile, err)
	}
	groups, err := os.Getgroups()
	if err != nil {
		return nil, fmt.Errorf("read the groups of this process: %w", err)
	}
	return &machine{
		boot: id, clock: clock.System(), wall: time.Now,
		user: os.Geteuid(), groups: append(groups, os.Getegid()),
		owner: owner, identity: identity, tryLock: tryLock, network: network, untouched: untouched,
		sync: (*os.File).Sync,
	}, nil
}

func owner(fi fs.FileInfo) (uid, gid int) {
	st := fi.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid)
}

func identity(fi fs.FileInfo) string {
	st := fi.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("file:%x:%x", st.Dev, st.Ino)
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

// networks are the values of statfs(2)'s f_type that may be another machine's.
var networks = map[uint32]string{
	0x00006969: "NFS",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x0000517b: "SMB",
	0x65735546: "FUSE",
	0x01021997: "9P",
	0x0bd00bd0: "Lustre",
	0x00c36400: "Ceph",
	0x5346414f: "AFS",
	0x6b414653: "AFS",
	0x73757245: "Coda",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x47504653: "GPFS",
	0x19830326: "BeeGFS",
	0x786f4256: "VirtualBox shared folder",
}

func network(dir *os.File) string {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(dir.Fd()), &st); err != nil {
		return "unknown file system (" + err.Error() + ")"
	}
	return networks[uint32(st.Type)]
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

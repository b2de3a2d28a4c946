package platform

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/quorumlock/quorum"
)

const bootIDFile = "/proc/sys/kernel/random/boot_id"

// BootID returns 32 hexadecimal digits that change with every boot, and with
// nothing else. It matches [quorum.ErrUnsupported] where there are none.
func BootID() (string, error) {
	boot, err := os.ReadFile(bootIDFile)
	id := strings.ReplaceAll(strings.TrimSpace(string(boot)), "-", "")
	if err != nil || strings.Trim(id, "0123456789abcdef") != "" || len(id) != 32 {
		return "", fmt.Errorf("%w: votes on disk without a boot id in %s, since leases of an earlier boot "+
			"could not be told (mount /proc): %w", quorum.ErrUnsupported, bootIDFile, err)
	}
	return id, nil
}

// Identity is the device and the inode of a file, as "file:device:inode".
func Identity(fi fs.FileInfo) string {
	st := fi.Sys().(*syscall.Stat_t)
	return fmt.Sprintf("file:%x:%x", st.Dev, st.Ino)
}

// Links is how many names a file has.
func Links(fi fs.FileInfo) uint64 { return uint64(fi.Sys().(*syscall.Stat_t).Nlink) }

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

// Network names the file system of a directory if other machines may use it
// too, or if it cannot be told, and is empty else.
func Network(dir *os.File) string {
	var st syscall.Statfs_t
	if err := syscall.Fstatfs(int(dir.Fd()), &st); err != nil {
		return "unknown file system (" + err.Error() + ")"
	}
	return networks[uint32(st.Type)]
}

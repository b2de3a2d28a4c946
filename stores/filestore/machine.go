package filestore

import (
	"io/fs"
	"os"
	"time"

	"github.com/quorumlock/quorum/clock"
)

// machine is what the store needs of the operating system. It is a value, so
// that a test can reboot, turn the wall clock and be another user; what there
// is for real is in machine_linux.go.
type machine struct {
	boot  string      // changes with every boot, and with nothing else
	clock clock.Clock // one for all processes of this boot, and counts sleep
	wall  func() time.Time

	user   int   // effective user
	groups []int // effective and supplementary

	owner     func(fs.FileInfo) (uid, gid int)
	identity  func(fs.FileInfo) string        // device and inode
	tryLock   func(*os.File, lockKind) error  // errLocked when another holds it
	network   func(*os.File) string           // name of a network file system, or ""
	untouched func(*os.File) (yes, sure bool) // nothing was ever made in the directory
	sync      func(*os.File) error
}

type lockKind int

const (
	exclusive lockKind = iota
	shared
	unlocked
)

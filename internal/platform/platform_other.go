//go:build !linux

package platform

import (
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"github.com/quorumlock/quorum"
)

// BootID refuses: Go's standard library reaches no clock here that all
// processes share, that counts the time asleep and that nobody can set, beside
// an identifier of the boot. Without them a lease could outlive its time or
// end before it.
func BootID() (string, error) {
	return "", fmt.Errorf("%w: votes on the disk of %s: there is no boot id and no clock that all processes share; "+
		"use a memory store, or a server", quorum.ErrUnsupported, runtime.GOOS)
}

// Identity is never asked for where there is no BootID.
func Identity(fs.FileInfo) string { return "" }

// Links is never asked for where there is no BootID.
func Links(fs.FileInfo) uint64 { return 1 }

// Network is never asked for where there is no BootID.
func Network(*os.File) string { return "" }

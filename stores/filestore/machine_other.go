//go:build !linux

package filestore

import (
	"fmt"
	"runtime"

	"github.com/quorumlock/quorum"
)

// thisMachine refuses: Go's standard library reaches no clock here that all
// processes share, that counts the time asleep and that nobody can set, beside
// an identifier of the boot. Without them a lease could outlive its time or
// end before it.
func thisMachine() (*machine, error) {
	return nil, fmt.Errorf("%w: files on %s: there is no boot id and no clock that all processes share; "+
		"use a memory store, or a server", quorum.ErrUnsupported, runtime.GOOS)
}

//go:build !linux

package filestore

import "github.com/quorumlock/quorum/internal/platform"

// thisMachine refuses, see there.
func thisMachine() (*machine, error) {
	_, err := platform.BootID()
	return nil, err
}

package etcdstore

import (
	"encoding/hex"
	"strings"

	"github.com/quorumlock/quorum/internal/core"
)

// Everything of a name lies under one folder, so that one range reads it. A
// slash and a percent sign of the name are escaped, so that no name lies in
// another one's folder:
//
//	PREFIX/record              what the store says of itself
//	PREFIX/quarantine          there while the quarantine's time is not over
//	PREFIX/name/NAME/vote      who holds NAME alone
//	PREFIX/name/NAME/read/ID   a reader
//	PREFIX/name/NAME/count     its counter, which has no lease
//	PREFIX/name/NAME/tomb/ID   a released owner whose request may still come
//	PREFIX/name/NAME/forced/ID whose vote was removed by force
//	PREFIX/name/NAME/queue     who waits for it
func (s *Store) recordKey() string     { return s.prefix + "/record" }
func (s *Store) quarantineKey() string { return s.prefix + "/quarantine" }
func (s *Store) namesFolder() string   { return s.prefix + "/name/" }

// folder is where everything of a name lies.
func (s *Store) folder(name string) string { return s.namesFolder() + escape.Replace(name) + "/" }

var escape = strings.NewReplacer("%", "%25", "/", "%2F")

const (
	voteLeaf   = "vote"
	countLeaf  = "count"
	readLeaf   = "read/"
	tombLeaf   = "tomb/"
	forcedLeaf = "forced/"
	queueLeaf  = "queue"
)

// voteLeafOf is where a vote of an owner lies within the name's folder.
func voteLeafOf(id core.ID, mode core.Mode) string {
	if mode == core.Exclusive {
		return voteLeaf
	}
	return readLeaf + hex.EncodeToString(id[:])
}

func tombLeafOf(id core.ID) string   { return tombLeaf + hex.EncodeToString(id[:]) }
func forcedLeafOf(id core.ID) string { return forcedLeaf + hex.EncodeToString(id[:]) }

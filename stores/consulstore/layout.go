package consulstore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// The keys, below the prefix. A colon stands in no prefix, so the folders of
// one prefix are no names of another.
const (
	setDir        = ":set/"
	recordKey     = setDir + "record"
	lastKey       = setDir + "last"
	quarantineDir = setDir + "quarantine/"
	nameDir       = ":name/"
	bellDir       = ":bell/"

	countPart  = "count"
	queuePart  = "queue"
	votePart   = "vote/"
	tombPart   = "tomb/"
	forcedPart = "forced/"
)

// nameFolder is the folder of a name. Dots are escaped as well, because "." and
// ".." are no folders in the paths of a URL.
func nameFolder(name string) string {
	return nameDir + strings.ReplaceAll(url.QueryEscape(name), ".", "%2E") + "/"
}

// bellFolder is the folder of the bells of a name.
func bellFolder(name string) string {
	return bellDir + strings.TrimPrefix(nameFolder(name), nameDir)
}

const version = 1

// recordValue is what the store says of itself.
type recordValue struct {
	Version    int      `json:"version"`
	Sets       []string `json:"sets"` // fingerprints
	Step       int64    `json:"step"`
	Base       int64    `json:"base"`
	Quarantine string   `json:"quarantine,omitempty"` // session whose key is there until its time is over
	End        int64    `json:"end,omitempty"`        // about when, in microseconds by the clock of who began it
	Lost       bool     `json:"lost,omitempty"`
	// Life counts how often the server was seen to have forgotten. Life and the
	// index of the last transaction grow together and never fall.
	Life int64 `json:"life"`
}

// countValue is what outlives the votes of a name.
type countValue struct {
	Number int64 `json:"number"` // the last token, 0 for none
	Writer bool  `json:"writer"` // it was given to a writer
	Keep   int64 `json:"keep"`   // may be dropped then, in microseconds by a client's clock: a hint
	Votes  int   `json:"votes"`  // there were after this was written: one that is gone now has expired
	Last   uint8 `json:"last"`   // how the holder before ended: a core.Previous
	// Served is who was granted its turn last, whose line in the queue counts no more.
	Served string `json:"served,omitempty"`
	// Writes makes the value another one each time: Consul does not count a
	// write that changes nothing, and who read before must fail.
	Writes int64 `json:"writes"`
}

// voteValue is one vote.
type voteValue struct {
	Owner   string `json:"owner"`
	Attempt uint32 `json:"attempt"`
	Shared  bool   `json:"shared,omitempty"`
	Token   int64  `json:"token"`
	Since   int64  `json:"since"` // in microseconds by the holder's clock
	TTL     int64  `json:"ttl"`   // of the session, in microseconds
	Label   string `json:"label,omitempty"`
}

// tombValue refuses an owner's attempts up to one.
type tombValue struct {
	Owner   string `json:"owner"`
	Attempt uint32 `json:"attempt"`
}

// forcedValue remembers whose votes were removed by force, and by whom.
type forcedValue struct {
	Owners []string `json:"owners"`
	Label  string   `json:"label,omitempty"`
}

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of numbers and text
	}
	return text
}

// decode reads a value. Its error shows nothing of it.
func decode(key string, text []byte, v any) error {
	if json.Unmarshal(text, v) != nil {
		return fmt.Errorf("the value of %s is damaged, or of another version of this package; use another prefix", key)
	}
	return nil
}

func ownerID(text string) (id quorum.OwnerID) {
	_, _ = hex.Decode(id[:], []byte(text[:min(len(text), 2*len(id))]))
	return id
}

func hexID(id [16]byte) string { return hex.EncodeToString(id[:]) }

func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

package kubestore

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorumlock/quorum"
)

// The annotations that the store lives by. Nothing is decided by a Lease's
// spec, which only shows people who holds a name.
const (
	domain      = "quorumlock.github.io/"
	nameKey     = domain + "name"   // which name it is: the Lease is called by a digest of it
	recordKey   = domain + "record" // of the set's Lease: a recordValue
	countKey    = domain + "count"  // a countValue; removing it can repeat a token
	votesKey    = domain + "votes"  // []voteValue; removing it by hand frees the name
	marksKey    = domain + "marks"  // a marksValue
	prefixLabel = domain + "prefix" // a label, by which the names of a prefix are listed
)

// identityName is the Lease by whose UID one cluster is known. It lies beside
// all prefixes, so that two members with two prefixes are noticed.
const identityName = "quorum-server"

// setName and leaseName have one dot, and a prefix has none, so the Leases of
// one prefix are none of another.
func setName(prefix string) string { return prefix + ".set" }

// leaseName is what the Lease of a name is called. Names are any UTF-8 and
// Leases are called by a few letters, hence a digest; which name it was stands
// in an annotation and is compared.
func leaseName(prefix, name string) string {
	sum := sha256.Sum256([]byte(name))
	return prefix + "." + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))
}

const version = 1

// recordValue is what the store says of itself.
type recordValue struct {
	Version    int      `json:"version"`
	Member     string   `json:"member"`
	Sets       []string `json:"sets"` // fingerprints
	Step       int64    `json:"step"`
	Base       int64    `json:"base"`
	Quarantine string   `json:"quarantine,omitempty"` // its beat; over when it was seen for so long:
	TTL        int64    `json:"ttl,omitempty"`        // in microseconds
	End        int64    `json:"end,omitempty"`        // a number for its name, about when by the clock of who began it
	Lost       bool     `json:"lost,omitempty"`
	// Life counts how often the server was seen to have forgotten. Life and the
	// resource versions grow together and never fall.
	Life int64 `json:"life"`
	// Lease is the UID of the Lease that the record was written in; none in the
	// write that makes it, whose record is in quarantine. Another one's is a copy
	// that somebody put back, under a fresh resource version.
	Lease string `json:"lease,omitempty"`
}

// countValue is what outlives the votes of a name.
type countValue struct {
	Number int64 `json:"number"`         // the last token
	Writer bool  `json:"writer"`         // it was given to a writer
	Keep   int64 `json:"keep"`           // may be dropped then, in microseconds by a client's clock: a hint
	Last   uint8 `json:"last,omitempty"` // how the holder before ended: a core.Previous
}

// lasting is what ends. Only a clock that saw it begin can tell when: it is
// over for a client that has seen the beat for as long as the TTL.
type lasting struct {
	Beat string `json:"beat"` // another one each time that it begins anew
	TTL  int64  `json:"ttl"`  // in microseconds
}

// voteValue is one vote.
type voteValue struct {
	Owner   string `json:"owner"`
	Attempt uint32 `json:"attempt"`
	Shared  bool   `json:"shared,omitempty"`
	Token   int64  `json:"token"`
	Since   int64  `json:"since"` // in microseconds by the holder's clock, for people
	Label   string `json:"label,omitempty"`
	lasting
}

// markValue is a tombstone, which refuses an owner's attempts up to one, or
// says that an owner's vote was removed by force, by whom.
type markValue struct {
	Owner   string `json:"owner"`
	Attempt uint32 `json:"attempt,omitempty"`
	Label   string `json:"label,omitempty"`
	lasting
}

type marksValue struct {
	Tombs  []markValue `json:"tombs,omitempty"`
	Forced []markValue `json:"forced,omitempty"`
}

// object is a Lease as it was read, or nil where there is none.
type object struct {
	lease *coordination.Lease
	index uint64 // its resource version
}

func newObject(l *coordination.Lease) (*object, error) {
	index, err := strconv.ParseUint(l.ResourceVersion, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the resource version of Lease %s is no number: %q", l.Name, l.ResourceVersion)
	}
	return &object{l, index}, nil
}

// value decodes an annotation, if it is there. Its error shows nothing of it.
func (o *object) value(key string, v any) error {
	text, ok := o.lease.Annotations[key]
	if ok && json.Unmarshal([]byte(text), v) != nil {
		return fmt.Errorf("the annotation %s of Lease %s is damaged, or of another version of this package; use another prefix",
			key, o.lease.Name)
	}
	return nil
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // structs of numbers and text
	}
	return string(text)
}

// show tells people who look at the Lease who holds the name: the first of its
// votes.
func show(spec *coordination.LeaseSpec, votes []voteValue) {
	if len(votes) == 0 {
		*spec = coordination.LeaseSpec{}
		return
	}
	v := votes[0]
	holder := v.Label
	if holder == "" {
		holder = quorum.Owner{ID: ownerID(v.Owner)}.Digest()
	}
	seconds := int32(min((v.TTL+1e6-1)/1e6, 1<<31-1))
	since := meta.NewMicroTime(time.UnixMicro(v.Since))
	*spec = coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &since}
}

func ownerID(text string) (id quorum.OwnerID) {
	_, _ = hex.Decode(id[:], []byte(text[:min(len(text), 2*len(id))]))
	return id
}

func hexID(id [16]byte) string { return hex.EncodeToString(id[:]) }

func micros(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }

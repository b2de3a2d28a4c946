package core

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"time"
)

// ID is the random part of an owner: 128 bits, drawn once for each call of
// Acquire and the same at every store.
type ID [16]byte

// Compare orders IDs byte by byte.
func (id ID) Compare(other ID) int {
	if c := cmp.Compare(binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(other[:8])); c != 0 {
		return c
	}
	return cmp.Compare(binary.BigEndian.Uint64(id[8:]), binary.BigEndian.Uint64(other[8:]))
}

// Owner names one attempt of one Acquire. A younger attempt of an ID replaces
// an older one in a store, and an older one is refused.
type Owner struct {
	ID      ID
	Attempt uint32
}

// Mode says with whom a vote may be shared.
type Mode uint8

// The modes.
const (
	Exclusive Mode = iota // alone
	Shared                // beside other readers
)

// Verb is what a store is asked to do.
type Verb uint8

// The verbs. The first three are the Store contract, the next two the
// HighWater ability, which carries a store out of quarantine, and the last two
// the Membership ability, by which the set of stores changes.
const (
	Acquire Verb = iota
	Extend
	Release
	ReadStep
	Raise
	ReadSets
	Serve
)

// Kind refines Acquire. All kinds but New are refinements of the same
// question, so a composite and a wrapper pass them on without knowing them.
type Kind uint8

// The kinds of Acquire.
const (
	New     Kind = iota // an ordinary acquisition
	Repair              // put a lease that stands elsewhere on this store too; takes no new token
	Convert             // the same owner changes its mode
	Force               // remove every other vote first
)

// Outcome is what a store answered, as the protocol counts it.
type Outcome uint8

// The outcomes. Only Granted is a vote; every outcome that is not a clear
// refusal is unknown, and unknown is not no.
const (
	NotAsked    Outcome = iota
	Granted             // Acquire, Extend, Release, Raise, Serve: done
	Contended           // another owner holds the name
	NotHeld             // Extend, Release: this owner has no vote here
	Ready               // a turn of the queue, not a vote
	Unknown             // it may have been carried out
	Undelivered         // it was provably not sent
	Quarantined         // the store may have forgotten, and does not vote yet
	Mismatch            // the store serves another set, strategy or MaxTTL
	Twin                // this member is a server that another member already is
)

// Previous says how the last holder of a name ended.
type Previous uint8

// The fates.
const (
	PreviousUnknown Previous = iota
	PreviousReleased
	PreviousExpired
)

// Order says how many stores are asked at once.
type Order uint8

// The orders.
const (
	InOrder       Order = iota // one after another
	FirstThenRest              // one after another until one gives its vote, then the rest at once unless one said held
	AllAtOnce
)

// Request is one message to one store.
type Request struct {
	Verb   Verb
	Kind   Kind
	Mode   Mode
	Order  Order
	Entomb bool // Release: refuse later requests of these attempts
	Owner  Owner
	Key    string
	Label  string
	TTL    time.Duration
	Floor  int64         // New, Convert, Extend: the token ends up at least here; Repair: the token itself
	Limit  time.Duration // for this one call, from when it is written
	MaxTTL time.Duration
	Set    uint64 // fingerprint of members, strategy and MaxTTL
	Raise  RaiseOrder
	Serve  *ServeOrder   // of a Serve; a pointer, so that no other request is longer for it
	Wait   WaitKind      // Acquire: what a refusal leaves in the store
	Ticket int64         // place in the queue, the same at all stores; 0 asks for one
	Keep   time.Duration // how long an entry of the queue lasts without another request
	Claim  time.Duration // how long a turn of this owner lasts
}

// RaiseOrder is the body of a Raise.
type RaiseOrder struct {
	Quarantine string // the quarantine it is meant for; any other refuses it
	Step       int64  // the highest step of a quorum read after that quarantine's time
	Alone      bool   // no such quorum can exist: the servers' clocks decide
	Fresh      bool   // an operator's word: nothing was ever held here
	Forgotten  bool   // an operator's word: the store forgot; put it in quarantine
}

// Answer is what came back.
type Answer struct {
	Outcome  Outcome
	Mode     Mode
	Previous Previous
	Clean    bool          // a refusal that says that nothing of this owner is here
	Forced   bool          // the owner's vote was removed by force, by Label
	Enough   bool          // of a release that has to be repeated: a quorum of a composite's members has done it
	Token    int64         // the owner's grant token; of a refusal, the name's counter
	TTL      time.Duration // given, at least what was asked
	Readers  int           // readers that hold the name
	Left     time.Duration // until the holder's vote, or the quarantine, ends
	Label    string        // of the holder
	Server   string        // identity of the server
	Reason   string        // for people, of a refusal that is neither contention nor loss
	Step     StepReading
	Sets     Sets  // of ReadSets: what the store serves
	Ticket   int64 // where the store queues: this owner's, or one to queue with elsewhere
	Rank     int   // of an entry of the queue: how many are before it
}

// StepReading is the body of an answer to ReadStep.
type StepReading struct {
	Step       int64  // G
	Base       int64  // the mark under which no token is given
	Quarantine string // which quarantine; empty when the store votes
	Over       bool   // its time is over: it may leave
}

// StepBits is how many tokens one step holds: tokens of step G start at
// G << StepBits. TokenLimit bounds every token: Redis scripts count in doubles,
// which are exact to 2^53. FloorReach is how far above the clock's step a
// floor may lie, so that one bad client cannot use up the tokens of a name.
const (
	StepBits   = 26
	TokenLimit = int64(1) << 53
	FloorReach = int64(1) << 40
)

// StepPeriod is how long a step lasts, and CounterRest how much longer than
// its lease a counter is kept at least. Twice the period, so that a counter
// that is gone lies below the step of whoever starts the name again.
const (
	StepPeriod  = 5 * time.Minute
	CounterRest = 2 * StepPeriod
)

var outcomeNames = [...]string{
	"not asked", "granted", "contended", "not held", "ready", "unknown",
	"undelivered", "quarantined", "mismatch", "twin",
}

func (o Outcome) String() string { return outcomeNames[o] }

func (v Verb) String() string {
	return [...]string{"acquire", "extend", "release", "read step", "raise", "read sets", "serve"}[v]
}

func (k Kind) String() string { return [...]string{"new", "repair", "convert", "force"}[k] }

func (m Mode) String() string { return [...]string{"exclusive", "shared"}[m] }

func (o Order) String() string {
	return [...]string{"in order", "first then rest", "all at once"}[o]
}

// String shows the attempt and two bytes of the ID: enough to tell owners of a
// trace apart, too little to speak in an owner's name.
func (o Owner) String() string { return fmt.Sprintf("%02x%02x/%d", o.ID[0], o.ID[1], o.Attempt) }

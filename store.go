package quorum

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Store keeps votes: who holds which name, until when, with which token. One
// server is a Store, and so is a [CombinedStore] of several.
//
// Every verb is atomic in the store. A refusal is a [*RefusedError]; an error
// wrapped by [Undelivered] says that the request provably never left; every
// other error means that the outcome is unknown, and the protocol then treats
// the request as one that may have been carried out.
//
// What a store promises for each name, and [storetest] checks one by one:
//
//   - the same attempt of an owner finds its own vote again, with the same
//     token; a younger attempt replaces an older one, an older one is refused
//   - an exclusive vote takes a token above every token given before, and at
//     least Floor; a counter outlives the votes it counted
//   - Extend knows exactly one owner; a vote whose time is over is none, even
//     when nobody took the name since
//   - [KindRepair] takes no new token, and is refused where the counter has
//     passed its own
//   - Release removes the attempts up to its owner's, and with Entomb refuses
//     those of their requests that come later
//   - the first request writes its Set into the store; a request of another
//     set is refused as a mismatch
//   - a Floor out of any proportion, a TTL out of range or a bad key is an
//     error wrapped by [Undelivered], never contention
//   - a context that has ended on arrival asks nothing
//
// A working store of one page is the example of package storetest.
//
// A store must honour the context it is given. One that does not is abandoned
// at the call's limit, and no further call is made to it for that lease until
// the old one has ended; a member of a member is called again, since composites
// remember nothing between calls.
//
// [storetest]: https://pkg.go.dev/github.com/quorumlock/quorum/storetest
type Store interface {
	// Name says who this member is, for every client alike: it is part of the
	// fingerprint of the set. It is not an address, and shows no secret.
	Name() string
	// Limits says what the store can do. It is data, so that a wrapper passes
	// it on.
	Limits() Limits
	// Acquire asks for a vote. A refusal because of another owner matches
	// [ErrHeld]. An Acquire that was not granted may still have left something
	// behind: who called it calls Release.
	Acquire(ctx context.Context, r Request) (Grant, error)
	// Extend keeps an existing vote until now + TTL, never shortening it, and
	// raises its token and the name's counter to at least Floor, in one step.
	// It matches [ErrNotHeld] when exactly this owner has no live vote here.
	Extend(ctx context.Context, r Request) (Grant, error)
	// Release removes every attempt up to the owner's from the name. It
	// matches [ErrNotHeld] when there was nothing to remove.
	Release(ctx context.Context, r Request) error
}

// OwnerID is the random part of an [Owner].
type OwnerID [16]byte

// Format hides the ID from every verb of package fmt; [Owner.Hex] shows it.
func (OwnerID) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("owner(…)")) }

// Owner is who a vote belongs to: 128 random bits for each call of Acquire, and
// the number of the attempt within it. A younger attempt of an ID replaces an
// older one in a store; an older one is refused. The ID is a secret: whoever
// knows it can release the lock, so it is never printed.
type Owner struct {
	ID      OwnerID
	Attempt uint32
}

// Hex returns the ID in 32 hexadecimal digits, for a store to keep. It is a
// secret; do not log it.
func (o Owner) Hex() string { return hex.EncodeToString(o.ID[:]) }

// Digest returns 12 hexadecimal digits that tell owners apart for people and
// cannot be turned back into the ID.
func (o Owner) Digest() string {
	sum := sha256.Sum256(o.ID[:])
	return hex.EncodeToString(sum[:6])
}

// String shows the attempt and hides the ID.
func (o Owner) String() string { return fmt.Sprintf("owner(…)/%d", o.Attempt) }

// GoString hides the ID from %#v as well.
func (o Owner) GoString() string { return o.String() }

// Format hides the ID from every verb of package fmt.
func (o Owner) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(o.String())) }

// Mode says with whom a vote may be shared.
type Mode uint8

// The modes.
const (
	ModeExclusive = Mode(core.Exclusive) // alone
	ModeShared    = Mode(core.Shared)    // beside other readers
)

// String returns "exclusive" or "shared".
func (m Mode) String() string { return core.Mode(m).String() }

// Kind refines Acquire.
type Kind uint8

// The kinds of Acquire.
const (
	KindNew     = Kind(core.New)     // an ordinary acquisition
	KindRepair  = Kind(core.Repair)  // put a lease that stands on a quorum elsewhere on this store too, with Floor as its token
	KindConvert = Kind(core.Convert) // an earlier attempt of this owner changes its mode
	KindForce   = Kind(core.Force)   // remove every other vote first
)

// String names the kind in lower case.
func (k Kind) String() string { return core.Kind(k).String() }

// Order says how many stores are asked at once.
type Order uint8

// The orders.
const (
	InOrder       = Order(core.InOrder)       // one after another; the first store arbitrates, so a vote never splits
	FirstThenRest = Order(core.FirstThenRest) // one after another until one gives its vote, then the rest at once unless one said held
	AllAtOnce     = Order(core.AllAtOnce)     // one round trip, and split votes under contention
)

// String names the order in lower case.
func (o Order) String() string { return core.Order(o).String() }

// Outcome is how an answer of a store counts.
type Outcome uint8

// The outcomes.
const (
	OutcomeNotAsked    = Outcome(core.NotAsked)
	OutcomeGranted     = Outcome(core.Granted)
	OutcomeContended   = Outcome(core.Contended)   // another owner holds the name
	OutcomeNotHeld     = Outcome(core.NotHeld)     // this owner has no vote here
	OutcomeReady       = Outcome(core.Ready)       // this owner's turn has come; not a vote
	OutcomeUnknown     = Outcome(core.Unknown)     // it may have been carried out
	OutcomeUndelivered = Outcome(core.Undelivered) // it was provably not sent
	OutcomeQuarantined = Outcome(core.Quarantined) // the store may have forgotten, and does not vote yet
	OutcomeMismatch    = Outcome(core.Mismatch)    // the store serves another set, strategy or MaxTTL
	OutcomeTwin        = Outcome(core.Twin)        // this member is the same server as another member
)

// String names the outcome in lower case.
func (o Outcome) String() string {
	if o > OutcomeTwin {
		return fmt.Sprintf("outcome %d", uint8(o))
	}
	return core.Outcome(o).String()
}

// Previous says how the last holder of a name ended, as far as a store knows.
type Previous uint8

// The fates.
const (
	PreviousUnknown  = Previous(core.PreviousUnknown)
	PreviousReleased = Previous(core.PreviousReleased)
	PreviousExpired  = Previous(core.PreviousExpired)
)

// String names the fate in lower case.
func (p Previous) String() string {
	return [...]string{"unknown", "released", "expired"}[p]
}

// Fingerprint stands for a set of stores: the names of its members, its
// strategy and MaxTTL. Clients that differ in any of them must not vote in
// one set, so it travels in every request and stands in every store's record.
type Fingerprint uint64

// String returns 16 hexadecimal digits.
func (f Fingerprint) String() string { return fmt.Sprintf("%016x", uint64(f)) }

// Request is what a store is asked. Fields may be added.
type Request struct {
	Key   string // 1 to 512 bytes of UTF-8 without NUL
	Owner Owner
	Mode  Mode
	Kind  Kind          // Acquire only
	TTL   time.Duration // how long a vote is to last, on the store's clock
	// Floor is the least token that the vote may end up with; of a repair it is
	// the token itself.
	Floor  int64
	Limit  time.Duration // for this one call, counted from when it is written
	MaxTTL time.Duration // the longest TTL of any client of the set
	Set    Fingerprint
	Entomb bool     // Release: refuse requests of these attempts that arrive later
	Label  string   // who asks, for people: at most 256 bytes, no secret
	Order  Order    // how a composite is to ask its members
	Wait   WaitKind // Acquire: what a refusal leaves in the store
	// Ticket is the place in the queue, the same at all stores: the clock of
	// the store that answered first, in microseconds since 1970. 0 asks for one.
	Ticket int64
	Keep   time.Duration // how long an entry of the queue lasts without another request
	Claim  time.Duration // how long a turn of this owner lasts
}

// Grant is a vote as a store gave it. Fields may be added.
type Grant struct {
	Token    int64         // the owner's grant token on this store
	TTL      time.Duration // given, counted from when the request left; at least what was asked
	Mode     Mode          // exclusive where the store cannot share
	Readers  int           // of a shared vote: readers that hold the name, this one included
	Previous Previous
	Server   string // identity of the server, to notice one server under two names
	Votes    []Vote // of a composite: what its members answered
	Ticket   int64  // where the store queues: this owner's, or one to queue with elsewhere
}

// Limits is what a store can do. The zero value is a store in this process
// that takes every TTL and key, does not share, and never forgets.
type Limits struct {
	MinTTL  time.Duration // shortest TTL it takes
	Grain   time.Duration // TTLs are rounded up to a multiple of it; 0 is exact
	MaxKey  int           // longest key in bytes; 0 is 512
	Reach   Reach         // between whom it arbitrates
	Domain  string        // what fails together with it; empty is itself alone
	Shares  bool          // readers may hold a name together
	Watches bool          // it is a [Watcher]
	Queues  bool          // it keeps a queue for each name: [WaitTake] and [WaitQueue]
	Forgets bool          // it may lose what it acknowledged; it must then be a [HighWater]
	Doubles bool          // its client may send a request twice by itself
	// Observe is not 0 where no server ends votes: each client takes a name over
	// once it has watched the holder's vote unchanged for its TTL, and for no
	// less than this. A client that just came finds a dead holder's name held,
	// and is told in [RefusedError.Left] for how long.
	Observe time.Duration
}

// Reach says between whom a store arbitrates. All rivals of a lock must reach
// the same store, so a set is as wide as its narrowest member.
type Reach int8

// The reaches, from narrow to wide.
const (
	ReachNone    Reach = iota - 1 // nobody: it grants everything, and stands alone
	ReachProcess                  // goroutines of one process
	ReachHost                     // processes of one machine
	ReachCluster                  // machines
)

// String names the reach in lower case.
func (r Reach) String() string { return [...]string{"none", "process", "host", "cluster"}[r-ReachNone] }

// Vote is one store's part in an operation.
type Vote struct {
	Store   string // its name
	Outcome Outcome
	Token   int64
	Mode    Mode          // of a vote: exclusive where the store cannot share, whatever was asked for
	Took    time.Duration // from sending to the answer
	Err     error         // nil when granted or not asked
	Votes   []Vote        // of a composite: its members' votes
}

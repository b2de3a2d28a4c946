package quorum

import (
	"errors"
	"fmt"
	"time"
)

// What taking a lock can come to.
var (
	// ErrHeld is contention and nothing else: somebody else has the name.
	ErrHeld = errors.New("quorum: held by another owner")
	// ErrNoQuorum means that too few stores answered to decide. The lock may or
	// may not be free.
	ErrNoQuorum = errors.New("quorum: too few stores answered")
	// ErrExpired means that the acquisition took longer than its own TTL.
	ErrExpired = errors.New("quorum: the acquisition outlived its TTL")
	// ErrMismatch means that a store serves another set of stores, strategy or
	// MaxTTL than this client's. All clients of a lock must agree on them.
	ErrMismatch = errors.New("quorum: the store serves another set")
)

// What holding a lock can come to.
var (
	// ErrLost means that the lease is over although nobody released it.
	ErrLost = errors.New("quorum: lease lost")
	// ErrReleased means that the lease was released.
	ErrReleased = errors.New("quorum: lease released")
	// ErrNotHeld is a store's word that this owner has no vote there, and
	// [Held]'s that the context carries no such lock.
	ErrNotHeld = errors.New("quorum: not held")
)

// What calls themselves can come to, before anything is sent.
var (
	// ErrClosed means that the Locker was closed.
	ErrClosed = errors.New("quorum: locker closed")
	// ErrInvalidKey means that the key cannot be locked; the text says why.
	ErrInvalidKey = errors.New("quorum: invalid key")
	// ErrInvalidTTL means that a TTL is out of range; the text says which.
	ErrInvalidTTL = errors.New("quorum: invalid TTL")
	// ErrInvalidOption means that a setting, or two of them together, make no
	// sense; the text names them and their values.
	ErrInvalidOption = errors.New("quorum: invalid option")
	// ErrUnsupported means that a store cannot do what was asked of it.
	ErrUnsupported = errors.New("quorum: not supported by the store")
)

// RefusedError is a store's clear answer that it did not do what was asked.
type RefusedError struct {
	Outcome Outcome
	Label   string        // of the holder, when contended
	Left    time.Duration // until the holder's vote or the quarantine ends; 0 when not known
	Counter int64
	Readers int
	Ticket  int64 // where the store queues: this owner's, or one to queue with elsewhere
	Rank    int   // of an entry of the queue: how many are before it
	// Clean says that nothing of this owner is in the store. It must be false
	// where anything may be, and where the client may send a request twice.
	Clean  bool
	Forced bool // this owner's vote was removed by force, by Label
	Server string
	Votes  []Vote // of a composite: what its members answered
	// Reason is the text of a refusal that is neither contention nor loss,
	// such as which fingerprint the store serves. It shows no secret.
	Reason string
}

// Error says what the store answered.
func (e *RefusedError) Error() string {
	switch {
	case e.Reason != "":
		return e.Outcome.String() + ": " + e.Reason
	case e.Forced:
		return fmt.Sprintf("%s: taken by force by %s", e.Outcome, e.Label)
	case e.Outcome == OutcomeContended && e.Label != "":
		return fmt.Sprintf("held by %s for at most %v more", e.Label, leftText(e.Left))
	case e.Outcome == OutcomeQuarantined:
		return fmt.Sprintf("quarantined for %v more: it may have forgotten votes; a new set needs Init", leftText(e.Left))
	}
	return e.Outcome.String()
}

// Is matches the sentinel of the outcome.
func (e *RefusedError) Is(target error) bool {
	switch target {
	case ErrHeld:
		return e.Outcome == OutcomeContended
	case ErrNotHeld:
		return e.Outcome == OutcomeNotHeld
	case ErrMismatch:
		return e.Outcome == OutcomeMismatch
	}
	return false
}

// Undelivered wraps an error to say that the request provably never left, so
// that nothing of it can take effect later. A nil error stays nil.
func Undelivered(err error) error {
	if err == nil {
		return nil
	}
	return &undeliveredError{err}
}

type undeliveredError struct{ err error }

func (e *undeliveredError) Error() string { return "not sent: " + e.err.Error() }
func (e *undeliveredError) Unwrap() error { return e.err }

// OutcomeOf says how an error of a store counts: a [*RefusedError] as it says,
// one wrapped by [Undelivered] as that, a plain [ErrHeld], [ErrNotHeld] or
// [ErrMismatch] as its name says, nil as granted, everything else as unknown.
func OutcomeOf(err error) Outcome {
	if err == nil {
		return OutcomeGranted
	}
	if refused := (*RefusedError)(nil); errors.As(err, &refused) {
		if o := refused.Outcome; o == OutcomeGranted || o == OutcomeNotAsked || o > OutcomeTwin {
			return OutcomeUnknown // an error is neither
		}
		return refused.Outcome
	}
	if never := (*undeliveredError)(nil); errors.As(err, &never) {
		return OutcomeUndelivered
	}
	switch {
	case errors.Is(err, ErrHeld):
		return OutcomeContended
	case errors.Is(err, ErrNotHeld):
		return OutcomeNotHeld
	case errors.Is(err, ErrMismatch):
		return OutcomeMismatch
	}
	return OutcomeUnknown
}

// refusedAs is errors.As for a refusal, and false for nil.
func refusedAs(err error, target **RefusedError) bool {
	return err != nil && errors.As(err, target)
}

// noQuorumError is a composite's answer when too few members gave a clear one:
// the outcome is unknown. A release must reach every member, so it is also the
// answer where a quorum of them released, and the others have to be told again.
type noQuorumError struct {
	votes    []Vote
	released bool
}

func (e *noQuorumError) Error() string {
	if e.released {
		return fmt.Sprintf("released, but not by every member: %s", voteText(e.votes, maxErrorText))
	}
	return fmt.Sprintf("too few members answered: %s", voteText(e.votes, maxErrorText))
}

// Is matches what the members' clients said. It has no Unwrap: a member's
// refusal must not be found in it, because the composite did not refuse.
func (e *noQuorumError) Is(target error) bool {
	for _, err := range voteErrors(e.votes) {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

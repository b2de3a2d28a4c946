package quorum

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// OpError is why an operation on a key failed. It matches the sentinel that
// says what it came to, the context's error if that ended the wait, and every
// store's own error.
type OpError struct {
	Op      string // "acquire", "acquire all", "slots", "force", "resume", "marshal", "promote", "demote", "extend", "release", "inspect", "init", "used", "forgotten", "check", "change" or "close"
	Key     string // empty where the operation concerns no key
	Need    int    // votes of the smallest quorum
	Votes   []Vote // one for each store; empty when none was asked
	Tries   int    // attempts made
	Took    time.Duration
	reasons []error // sentinel first
}

// Error says in one line of at most 1,024 bytes what was attempted on which key,
// what it came to, and what the stores answered: what several said alike once,
// with their names before it. A store's words are cut at 250 bytes; Votes has
// them whole.
func (e *OpError) Error() string {
	text := "quorum: " + e.Op
	if e.Key != "" {
		key := e.Key
		if len(key) > 64 {
			key = key[:61] + "..."
		}
		text += fmt.Sprintf(" %q", key)
	}
	for i, r := range e.reasons {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		text += sep + strings.TrimPrefix(r.Error(), "quorum: ")
	}
	if len(e.Votes) > 0 {
		text += fmt.Sprintf(" (%d granted, %d needed: ", granted(e.Votes), e.Need)
		text += voteText(e.Votes, maxErrorText-len(text)-1) + ")"
	}
	text = strings.NewReplacer("\n", " ", "\r", " ", ": quorum: ", ": ").Replace(text)
	return shorten(strings.ToValidUTF8(text, "?"), maxErrorText)
}

// Unwrap returns the sentinel, the context's error and the stores' errors.
func (e *OpError) Unwrap() []error {
	return append(e.reasons[:len(e.reasons):len(e.reasons)], voteErrors(e.Votes)...)
}

// LossReason says why a lease was lost.
type LossReason uint8

// The reasons.
const (
	LostExpired   = LossReason(core.LostExpired)   // no renewal reached enough stores in time
	LostTakenOver = LossReason(core.LostTakenOver) // stores say that another owner holds it
	LostQuorum    = LossReason(core.LostQuorum)    // too many stores have lost the vote
	LostMaxHold   = LossReason(core.LostMaxHold)   // MaxHold is over
	LostForced    = LossReason(core.LostForced)    // removed by force
	LostClosed    = LossReason(core.LostClosed)    // the Locker was closed
)

// String names the reason in lower case.
func (r LossReason) String() string {
	return [...]string{"not lost", "expired", "taken over", "quorum lost", "max hold", "forced", "closed"}[r]
}

// LostError says why a lease is over although nobody released it. It matches
// [ErrLost].
type LostError struct {
	Key    string
	Token  int64
	Reason LossReason
	By     string // of a lease that was taken by force: the label of who did it
}

// Error names the key, the token and the reason.
func (e *LostError) Error() string {
	text := fmt.Sprintf("quorum: lease on %q with token %d lost: %s", e.Key, e.Token, e.Reason)
	if e.By != "" {
		text += " by " + e.By
	}
	return text
}

// Unwrap returns [ErrLost].
func (e *LostError) Unwrap() error { return ErrLost }

// given refuses a nil context, in which a call could not even fail.
func given(ctx context.Context) error {
	if ctx == nil {
		return fmt.Errorf("%w: the context is nil; context.Background() is one that never ends", ErrInvalidOption)
	}
	return nil
}

// alive refuses a context that is nil or has ended: it asks no store.
func alive(ctx context.Context) error {
	if err := given(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// about is an error with what it was about before it, and the package's name once.
type about struct {
	what string
	err  error
}

func (e *about) Error() string {
	return "quorum: " + strings.ReplaceAll(e.what+": "+e.err.Error(), ": quorum: ", ": ")
}

func (e *about) Unwrap() error { return e.err }

func granted(votes []Vote) int {
	n := 0
	for _, v := range votes {
		if v.Outcome == OutcomeGranted {
			n++
		}
	}
	return n
}

func voteErrors(votes []Vote) []error {
	var out []error
	for _, v := range votes {
		if v.Err != nil {
			out = append(out, storeError{v.Err})
		}
	}
	return out
}

// storeError is what one store said, as part of an operation's error. It
// matches everything that the store's error does but the sentinels of this
// package and of contexts: those speak for the operation. One contended store
// does not make an outage contention, and one call that reached its limit does
// not mean that the caller's time is over.
type storeError struct{ err error }

func (e storeError) Error() string { return e.err.Error() }

func (e storeError) As(target any) bool { return errors.As(e.err, target) }

func (e storeError) Is(target error) bool {
	switch target {
	case ErrHeld, ErrNotHeld, ErrMismatch, ErrNoQuorum, ErrExpired, ErrLost, context.Canceled, context.DeadlineExceeded:
		return false
	}
	return errors.Is(e.err, target)
}

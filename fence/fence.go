// Package fence guards a resource with the tokens of its lock.
//
// A lock says who may act; it cannot stop a holder that was paused, lost the
// lock, and finishes its write when it wakes. The resource can: it refuses a
// token below the highest it has seen, and accepts an equal one, because that is
// the same holder writing again (M. Kleppmann, "How to do distributed locking",
// 2016). Admission and write must be one atomic step: a guard that is asked
// before a write elsewhere leaves the gap that it was to close. [SQL] shares the
// transaction of the write, and [RedisScript] its script; [Memory] has a lock of
// its own to hold for both.
//
// Fence with the tokens of exclusive locks only. Readers may share a number, and
// a reader's token fences nothing.
package fence

import (
	"context"
	"errors"
	"fmt"
)

// ErrStale means that a later holder has been here: the token is below the
// highest seen, and the write must not happen.
var ErrStale = errors.New("fence: stale token")

// StaleError says which token was refused, and matches [ErrStale].
type StaleError struct {
	Name  string // of the resource
	Token int64  // that was refused
	Seen  int64  // the highest seen; 0 when the guard does not know it
}

// Error names the resource and the tokens.
func (e *StaleError) Error() string {
	if e.Seen == 0 {
		return fmt.Sprintf("fence: token %d for %q is stale: a later holder has been there; give up the write", e.Token, e.Name)
	}
	return fmt.Sprintf("fence: token %d for %q is stale: a holder with %d has been there; give up the write", e.Token, e.Name, e.Seen)
}

// Is matches [ErrStale].
func (e *StaleError) Is(target error) bool { return target == ErrStale }

// Guard remembers the highest token of each name.
type Guard interface {
	// Admit returns nil for a token that is at least the highest admitted for
	// the name, and remembers it, in one atomic step; a lower one is a
	// [*StaleError] and changes nothing. A token below 1 is an error of the
	// caller's. Any other error means that it is not known whether the token
	// was remembered; the write must not happen, and may be tried again.
	Admit(ctx context.Context, name string, token int64) error
}

// check refuses what no lease's Token returns.
func check(name string, token int64) error {
	if token < 1 {
		return fmt.Errorf("fence: token %d for %q is no token: they start at 1", token, name)
	}
	return nil
}

package redisstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// Option is a setting of a [Store].
type Option func(*Store) error

const defaultPrefix = "quorum"

// Prefix sets the namespace of all keys, "quorum" by default: 1 to 64 bytes
// without braces, spaces and control characters. A key under one prefix never
// meets the same key under another.
func Prefix(prefix string) Option {
	return func(s *Store) error {
		bad := func(r rune) bool { return r <= ' ' || r == '{' || r == '}' || r == 0x7f }
		if prefix == "" || len(prefix) > 64 || strings.ContainsFunc(prefix, bad) {
			return fmt.Errorf("%w: Prefix(%q): it must be 1 to 64 bytes without braces, spaces and control characters",
				quorum.ErrInvalidOption, prefix)
		}
		s.prefix = prefix
		return nil
	}
}

// RunID says which life of the server the client speaks to, for a server
// embedded in the process that has no run id of its own, such as miniredis.
// Whoever embeds it must give another id after each start. It must be 1 to 64
// letters, digits, dots, dashes or underscores.
func RunID(id string) Option {
	return func(s *Store) error {
		if id == "" || len(id) > 64 || strings.Trim(id, idLetters) != "" {
			return fmt.Errorf("%w: RunID(%q): it must be 1 to 64 letters, digits, dots, dashes or underscores",
				quorum.ErrInvalidOption, id)
		}
		s.runID = id
		return nil
	}
}

const idLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

// WaitReplicas lets a grant count only once n replicas have acknowledged it,
// which is waited for up to d; the call's limit must leave room for it. A grant
// that they do not acknowledge in time is undone as far as the server answers,
// and its outcome is unknown. n is 1 to 16 and d 1 ms to 10 s. It makes the loss
// of a vote by a fail-over less likely and does not rule it out: a replica that
// has not acknowledged may be promoted. It costs a round trip to the replicas a
// grant and an extension, and WAIT must be allowed to the user.
func WaitReplicas(n int, d time.Duration) Option {
	return func(s *Store) error {
		if n < 1 || n > 16 || d < time.Millisecond || d > 10*time.Second {
			return fmt.Errorf("%w: WaitReplicas(%d, %v): 1 to 16 replicas, 1ms to 10s", quorum.ErrInvalidOption, n, d)
		}
		s.replicas, s.patience = n, d
		return nil
	}
}

// UnsafeNoGuard lets a server that forgot vote at once, so that two owners can
// hold one lock after a restart. It is for tests that must show what the guard
// prevents, and for servers that never hold anything.
func UnsafeNoGuard() Option {
	return func(s *Store) error {
		s.guard = false
		return nil
	}
}

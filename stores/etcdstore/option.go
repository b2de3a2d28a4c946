package etcdstore

import (
	"fmt"
	"strings"

	"github.com/quorumlock/quorum"
)

// Option is a setting of a [Store].
type Option func(*Store) error

const defaultPrefix = "quorum"

// Prefix sets the namespace of all keys, "quorum" by default: 1 to 64 bytes of
// printable ASCII without a slash at its end. A key under one prefix never
// meets the same key under another, unless one prefix begins with the other and
// a slash.
func Prefix(prefix string) Option {
	return func(s *Store) error {
		bad := func(r rune) bool { return r <= ' ' || r >= 0x7f }
		if prefix == "" || len(prefix) > 64 || strings.HasSuffix(prefix, "/") || strings.ContainsFunc(prefix, bad) {
			return fmt.Errorf("%w: Prefix(%q): it must be 1 to 64 bytes of printable ASCII, without a slash at its end",
				quorum.ErrInvalidOption, prefix)
		}
		s.prefix = prefix
		return nil
	}
}

package kubestore

import (
	"fmt"
	"regexp"

	"github.com/quorumlock/quorum"
)

// Option is a setting of a [Store].
type Option func(*Store) error

const defaultPrefix = "quorum"

// labelText is what both the name of a Lease and the value of a label may be.
var labelText = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// Prefix sets what the names of all Leases begin with, "quorum" by default: 1
// to 63 small letters, digits and inner dashes. A key under one prefix never
// meets the same key under another.
func Prefix(prefix string) Option {
	return func(s *Store) error {
		if !labelText.MatchString(prefix) {
			return fmt.Errorf("%w: Prefix(%q): it must be 1 to 63 small letters, digits and inner dashes", quorum.ErrInvalidOption, prefix)
		}
		s.prefix = prefix
		return nil
	}
}

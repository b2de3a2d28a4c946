package consulstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/quorumlock/quorum"
)

// Option is a setting of a [Store].
type Option func(*Store) error

const (
	defaultPrefix = "quorum"
	// sessionMin and sessionMax are between what Consul takes the TTL of a
	// session, unless session_ttl_min says otherwise.
	sessionMin = 10 * time.Second
	sessionMax = 24 * time.Hour
)

// Prefix sets the folder of all keys, "quorum" by default: 1 to 128 letters,
// digits, dots, dashes, underscores and inner slashes. A key under one prefix
// never meets the same key under another.
func Prefix(prefix string) Option {
	return func(s *Store) error {
		const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/"
		segments := strings.Split(prefix, "/")
		for _, segment := range segments {
			if len(prefix) > 128 || strings.Trim(segment, ".") == "" || strings.Trim(segment, letters) != "" {
				return fmt.Errorf("%w: Prefix(%q): it must be 1 to 128 letters, digits, dots, dashes, underscores and inner slashes",
					quorum.ErrInvalidOption, prefix)
			}
		}
		s.prefix = prefix + "/"
		return nil
	}
}

// MinTTL says that the servers' session_ttl_min is another one than 10 s, for
// clusters that were configured so: 1 s to 24 h. It is the shortest TTL that
// the store takes. A cluster that has a longer minimum refuses the sessions.
func MinTTL(ttl time.Duration) Option {
	return func(s *Store) error {
		if ttl < time.Second || ttl > sessionMax {
			return fmt.Errorf("%w: MinTTL(%v): it must lie between 1s and 24h", quorum.ErrInvalidOption, ttl)
		}
		s.limits.MinTTL = ttl
		return nil
	}
}

// Datacenter names the datacenter that the store lies in, where it is not the
// one of the agent that the client speaks to.
func Datacenter(name string) Option {
	return func(s *Store) error {
		if name == "" {
			return fmt.Errorf("%w: Datacenter of an empty name", quorum.ErrInvalidOption)
		}
		s.datacenter = name
		return nil
	}
}

package quorum

import (
	"fmt"
	"time"
)

// Between is the Locker of clients while the stores change from one set to
// another, see [Change]: a lock needs a quorum of both ([Joint]), so that it
// excludes the clients of either. from and to are Lockers as the clients of the
// two sets have them, alike at all clients; their stores are used, and closing
// them is still for who made them.
//
// Its settings are those of to, changed by options. Its MaxTTL is the longer of
// the two, because a store may have forgotten a vote of either set, and its TTL
// at most the shorter, because a store may be left to clients of either.
func Between(from, to *Locker, options ...Option) (*Locker, error) {
	if from == nil || to == nil {
		return nil, fmt.Errorf("%w: Between without a Locker", ErrInvalidOption)
	}
	set, err := Joint(from.set, to.set)
	if err != nil {
		return nil, err
	}
	def := to.def
	def.maxTTL, def.most = max(from.def.maxTTL, to.def.maxTTL), min(from.def.maxTTL, to.def.maxTTL)
	if def.ttl > def.most {
		def.ttl, def.renewEvery, def.expiring = def.most, 0, 0
	}
	return newLocker(set, def, options)
}

// bound is the longest TTL that a client may use.
func (s settings) bound() time.Duration {
	if s.most > 0 {
		return s.most
	}
	return s.maxTTL
}

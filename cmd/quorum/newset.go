package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
)

// newSet is the stores that a set changes to. A command that takes or shows
// locks and is given one speaks as a client in between.
type newSet struct {
	stores []string
	file   string
	maxTTL time.Duration
}

func (n *newSet) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&n.stores, "new-store", nil, "while the set of stores changes: a store's DSN in the new set, where --store and the like name the old one")
	f.StringVar(&n.file, "new-stores-file", "", "the same, as a file of DSNs")
	f.DurationVar(&n.maxTTL, "new-max-ttl", 0, "--max-ttl of the new set (default: that of the old)")
}

func (n *newSet) given() bool { return len(n.stores) > 0 || n.file != "" || n.maxTTL != 0 }

// lock opens the stores and makes a Locker of them: of a client in between
// where a new set is named too. A TTL of a command that holds nothing only has
// to fit under the set's longest.
func (s *set) lock(ctx context.Context, stderr io.Writer, options ...quorum.Option) (*quorum.Locker, error) {
	if s.next == nil || !s.next.given() {
		store, err := s.open(ctx, stderr)
		if err != nil {
			return nil, err
		}
		locker, err := quorum.New(store, append([]quorum.Option{quorum.TTL(s.maxTTL), quorum.MaxTTL(s.maxTTL)}, options...)...)
		if err != nil {
			return nil, errors.Join(err, store.Close())
		}
		return locker, nil
	}
	from, to, err := s.ends(ctx, stderr)
	if err != nil {
		return nil, err
	}
	// The clients of the two sets' stores live as long as this process.
	return quorum.Between(from, to, options...)
}

// ends makes the Lockers of clients of the old set and of the new. A set that
// only gets another --max-ttl has the same stores before and after.
func (s *set) ends(ctx context.Context, stderr io.Writer, options ...quorum.Option) (from, to *quorum.Locker, err error) {
	after := set{stores: s.next.stores, file: s.next.file, maxTTL: s.next.maxTTL}
	if len(after.stores) == 0 && after.file == "" {
		after.stores, after.file = s.stores, s.file
	}
	if after.maxTTL == 0 {
		after.maxTTL = s.maxTTL
	}
	var lockers []*quorum.Locker
	for _, one := range []*set{s, &after} {
		store, err := one.open(ctx, stderr)
		if err != nil {
			return nil, nil, err
		}
		settings := append([]quorum.Option{quorum.TTL(one.maxTTL), quorum.MaxTTL(one.maxTTL)}, options...)
		locker, err := quorum.New(store, settings...)
		if err != nil {
			return nil, nil, errors.Join(err, store.Close())
		}
		lockers = append(lockers, locker)
	}
	return lockers[0], lockers[1], nil
}

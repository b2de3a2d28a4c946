package main

import (
	"context"
	"io"
	"net/url"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/consulstore"
	"github.com/quorumlock/quorum/stores/etcdstore"
	"github.com/quorumlock/quorum/stores/filestore"
	"github.com/quorumlock/quorum/stores/kubestore"
	"github.com/quorumlock/quorum/stores/pgstore"
	"github.com/quorumlock/quorum/stores/redisstore"
	"github.com/quorumlock/quorum/stores/sqlitestore"
)

// storesVariable is the one environment variable that is read as a setting.
const storesVariable = "QUORUM_STORES"

// closeLimit bounds what quorum does after its command: releasing, and rolling
// back what an attempt left. It exceeds the library's own limit for these.
const closeLimit = 6 * time.Second

// set is which stores to use, and what all their clients must agree on.
type set struct {
	stores []string
	file   string
	maxTTL time.Duration
	local  string  // the directory that is used because no store is named
	next   *newSet // where the command may be given the set that this one changes to
}

func (s *set) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.stores, "store", nil,
		"a store's DSN: redis://host:port/db, rediss://…, postgres://user@host/db, file:/directory or sqlite:/file; several are a quorum (default: "+
			storesVariable+", else a directory of your own on this machine)")
	f.StringVar(&s.file, "stores-file", "", "a file of DSNs, one a line, # begins a comment")
	f.DurationVar(&s.maxTTL, "max-ttl", time.Minute, "the longest --ttl of any client; all clients must agree on it")
	if s.next != nil {
		s.next.flags(cmd)
	}
}

// open opens the stores. Who calls it closes what it returns, or the Locker
// made of it.
func (s *set) open(ctx context.Context, stderr io.Writer) (*quorum.CombinedStore, error) {
	dsns, err := s.dsns(stderr)
	if err != nil {
		return nil, err
	}
	return openStores(ctx, dsns)
}

// openStores opens stores of all kinds that the command knows. What go-redis
// has to say about a node that is down is left out: the library says it too.
func openStores(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
	redis.SetLogger(silence{})
	return quorum.Open(ctx, dsns, filestore.Opener(), sqlitestore.Opener(), redisstore.Opener(), pgstore.Opener(),
		consulstore.Opener(), etcdstore.Opener(), kubestore.Opener())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// dsns finds the stores: flags first, then the environment, then the user's
// own directory.
func (s *set) dsns(stderr io.Writer) ([]string, error) {
	setting, given := os.LookupEnv(storesVariable)
	switch {
	case len(s.stores) > 0 && s.file != "":
		return nil, usagef("--store and --stores-file exclude each other")
	case len(s.stores) > 0:
		return checkArguments(s.stores)
	case s.file != "":
		return readStoresFile(s.file, stderr)
	case given:
		found := quorum.SplitDSNs(setting)
		if len(found) == 0 {
			return nil, usagef("%s is set and names no store; unset it to lock in a directory of this user's own", storesVariable)
		}
		return checkDSNs(storesVariable, found)
	}
	dir, err := defaultDirectory()
	if err != nil {
		return nil, err
	}
	s.local = dir
	return []string{(&url.URL{Scheme: "file", Path: dir}).String()}, nil
}

// checkArguments keeps passwords out of arguments, which every user of the
// machine can read in the list of processes.
func checkArguments(dsns []string) ([]string, error) {
	checked, err := checkDSNs("--store", dsns)
	if err != nil {
		return nil, err
	}
	for _, dsn := range checked {
		if hasPassword(dsn) {
			return nil, usagef("--store %s: a password in an argument is visible to every user of this machine; "+
				"give the DSN in %s or in a file with --stores-file", quorum.MaskDSN(dsn), storesVariable)
		}
	}
	return checked, nil
}

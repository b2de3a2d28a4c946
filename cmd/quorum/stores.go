package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/filestore"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// storesVariable is the one environment variable that is read as a setting.
const storesVariable = "QUORUM_STORES"

// set is which stores to use, and what all their clients must agree on.
type set struct {
	stores []string
	file   string
	maxTTL time.Duration
}

func (s *set) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringArrayVar(&s.stores, "store", nil,
		"a store's DSN: redis://host:port/db, rediss://… or file:/directory; several are a quorum (default: "+
			storesVariable+", else a directory of your own on this machine)")
	f.StringVar(&s.file, "stores-file", "", "a file of DSNs, one a line, # begins a comment")
	f.DurationVar(&s.maxTTL, "max-ttl", time.Minute, "the longest --ttl of any client; all clients must agree on it")
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
	return quorum.Open(ctx, dsns, filestore.Opener(), redisstore.Opener())
}

type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// dsns finds the stores: flags first, then the environment, then the user's
// own directory.
func (s *set) dsns(stderr io.Writer) ([]string, error) {
	var found []string
	var err error
	switch {
	case len(s.stores) > 0 && s.file != "":
		err = usagef("--store and --stores-file exclude each other")
	case len(s.stores) > 0:
		found, err = s.stores, refusePasswords(s.stores)
	case s.file != "":
		found, err = readStoresFile(s.file, stderr)
	default:
		found = splitStores(os.Getenv(storesVariable))
	}
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		dir, err := defaultDirectory()
		if err != nil {
			return nil, err
		}
		found = []string{(&url.URL{Scheme: "file", Path: dir}).String()}
	}
	return absolute(found)
}

// refusePasswords keeps passwords out of arguments, which every user of the
// machine can read in the list of processes.
func refusePasswords(dsns []string) error {
	for _, dsn := range dsns {
		if quorum.MaskDSN(dsn) != dsn {
			return usagef("--store %s: a password in an argument is visible to every user of this machine; "+
				"give the DSN in %s or in a file with --stores-file", quorum.MaskDSN(dsn), storesVariable)
		}
	}
	return nil
}

// splitStores splits at blanks, and at a comma that a DSN follows: a comma may
// also stand inside a DSN.
func splitStores(text string) []string {
	var found []string
	for _, word := range strings.Fields(text) {
		for _, part := range strings.Split(word, ",") {
			if scheme, _, ok := strings.Cut(part, ":"); ok && isScheme(scheme) || len(found) == 0 {
				found = append(found, part)
			} else {
				found[len(found)-1] += "," + part
			}
		}
	}
	for i := range found {
		found[i] = strings.TrimRight(found[i], ",")
	}
	return found
}

func isScheme(s string) bool {
	for _, r := range s {
		if r < 'a' || r > 'z' {
			return false
		}
	}
	return s != ""
}

func readStoresFile(path string, stderr io.Writer) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("--stores-file: %v", err)
	}
	defer f.Close()
	var found []string
	secret := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		found = append(found, line)
		secret = secret || quorum.MaskDSN(line) != line
	}
	if err := lines.Err(); err != nil {
		return nil, usagef("--stores-file %s: %v", path, err)
	}
	if len(found) == 0 {
		return nil, usagef("--stores-file %s names no store; write one DSN a line", path)
	}
	if info, err := f.Stat(); err == nil && secret && info.Mode().Perm()&0o004 != 0 {
		say(stderr, "warning: every user can read the password in %s; run chmod 600 %s", path, path)
	}
	return found, nil
}

// absolute makes file: DSNs independent of the working directory, since their
// text becomes the store's name, on which all clients must agree.
func absolute(dsns []string) ([]string, error) {
	var found []string
	for _, dsn := range dsns {
		u, err := url.Parse(dsn)
		if err != nil || u.Scheme != "file" {
			found = append(found, dsn) // Open says what is wrong with it
			continue
		}
		path := u.Path
		if u.Opaque != "" {
			if path, err = url.PathUnescape(u.Opaque); err != nil {
				return nil, usagef("store %s: %v", dsn, err)
			}
		}
		if path == "" || u.Host != "" {
			return nil, usagef("store %s: write file:/directory or file:relative/directory", dsn)
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, fmt.Errorf("store %s: %w", dsn, err)
		}
		u.Opaque, u.Path, u.RawPath, u.OmitHost = "", path, "", false
		found = append(found, u.String())
	}
	return found, nil
}

package redisstore

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

const inCluster = "the server is a node of a Redis Cluster; connect with redis.NewClusterClient, or give each store a server of its own"

// refusals are the errors by which a server refuses a script before it starts,
// so that nothing was written, and what to do about each. Those of a cluster mean
// something else to a client that does not know of it.
var refusals = []struct {
	code, todo string
	cluster    bool
}{
	{"READONLY", "the server is a read-only replica; connect to the primary or wait for its promotion", false},
	{"WRONGPASS", "the server refuses the user or the password", false},
	{"NOAUTH", "the server asks for a password and the client has none", false},
	{"NOPERM", "the user may not do this; allow it evalsha, script|load, watch, unwatch, info and the keys of the prefix", false},
	{"OOM", "the server's memory is full; raise maxmemory or free some of it", false},
	{"MISCONF", "the server stopped writing because it cannot save; look at its disk and log", false},
	{"NOREPLICAS", "the server stopped writing because it has too few good replicas", false},
	{"MASTERDOWN", "the server is a replica that has lost its primary", false},
	{"LOADING", "the server is still loading its data", false},
	{"BUSY", "the server is busy with another script", false},
	{"ASK", "the name's slot is being migrated to another node; try again when it has been", false},
	{"TRYAGAIN", "the name's slot is being migrated to another node; try again when it has been", false},
	{"CLUSTERDOWN", "the cluster does not serve the name's slot", true},
	{"MOVED", "the name's slot has moved to another node; the client looks where", true},
	{"RECORD", "another version of this package, or a person, wrote it; use another prefix or server", false},
}

// explain says what an error of the client means. It is wrapped by
// quorum.Undelivered if the request provably had no effect; a client that may
// have sent it twice proves nothing.
func (s *Store) explain(err error) error {
	if why, ok := strings.CutPrefix(err.Error(), "INVALID "); ok {
		return quorum.Undelivered(fmt.Errorf("%w: %s", quorum.ErrInvalidOption, why))
	}
	told, never := s.translate(err)
	if !never || s.limits.Doubles {
		return told
	}
	return quorum.Undelivered(told)
}

// translate adds what to do about an error, and reports whether one call that
// came to it had no effect.
func (s *Store) translate(err error) (_ error, never bool) {
	text := err.Error()
	for _, r := range refusals {
		if !strings.HasPrefix(text, r.code+" ") && !strings.Contains(text, ": "+r.code+" ") {
			continue
		}
		// An error that a command raised within a script may come after a
		// write; a replica cannot have written.
		never = r.code == "READONLY" || !strings.Contains(text, "script: ")
		if r.cluster && s.cluster == nil {
			return fmt.Errorf("%w: %s: %w", quorum.ErrUnsupported, inCluster, err), never
		}
		return fmt.Errorf("%s: %w", r.todo, err), never
	}
	var op *net.OpError
	never = errors.As(err, &op) && op.Op == "dial" ||
		errors.Is(err, redis.ErrPoolTimeout) ||
		errors.Is(err, redis.ErrPoolExhausted) ||
		errors.Is(err, redis.ErrClosed)
	return err, never
}

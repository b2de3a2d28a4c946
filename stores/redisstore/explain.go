package redisstore

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// refusals are the errors by which a server refuses a script before it starts,
// so that nothing was written, and what to do about each.
var refusals = []struct{ code, todo string }{
	{"READONLY", "the server is a read-only replica; connect to the primary or wait for its promotion"},
	{"WRONGPASS", "the server refuses the user or the password"},
	{"NOAUTH", "the server asks for a password and the client has none"},
	{"NOPERM", "the user may not do this; allow it evalsha, script|load, watch, unwatch, info and the keys of the prefix"},
	{"OOM", "the server's memory is full; raise maxmemory or free some of it"},
	{"MISCONF", "the server stopped writing because it cannot save; look at its disk and log"},
	{"NOREPLICAS", "the server stopped writing because it has too few good replicas"},
	{"MASTERDOWN", "the server is a replica that has lost its primary"},
	{"LOADING", "the server is still loading its data"},
	{"BUSY", "the server is busy with another script"},
	{"CLUSTERDOWN", "the server is a node of a Redis Cluster, which this store does not support"},
	{"MOVED", "the server is a node of a Redis Cluster, which this store does not support"},
	{"RECORD", "another version of this package, or a person, wrote it; use another prefix or server"},
}

// explain says what an error of the client means, and whether the request
// provably had no effect. A client that may have sent it twice proves nothing.
func (s *Store) explain(err error) error {
	text := err.Error()
	if why, ok := strings.CutPrefix(text, "INVALID "); ok {
		return quorum.Undelivered(fmt.Errorf("%w: %s", quorum.ErrInvalidOption, why))
	}
	var never bool
	for _, r := range refusals {
		if strings.HasPrefix(text, r.code+" ") || strings.Contains(text, ": "+r.code+" ") {
			err = fmt.Errorf("%s: %w", r.todo, err)
			// An error that a command raised within a script may come after a
			// write; a replica cannot have written.
			never = r.code == "READONLY" || !strings.Contains(text, "script: ")
			break
		}
	}
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "dial",
		errors.Is(err, redis.ErrPoolTimeout),
		errors.Is(err, redis.ErrPoolExhausted),
		errors.Is(err, redis.ErrClosed):
		never = true
	}
	if never && !s.limits.Doubles {
		return quorum.Undelivered(err)
	}
	return err
}

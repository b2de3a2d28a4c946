package consulstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
)

// refusals are texts by which a server refuses a request, and what to do about
// each. never says that such a request had no effect.
var refusals = []struct {
	text, todo string
	is         error
	never      bool
}{
	{"Permission denied", "the token may not do this; allow it key_prefix of the prefix, key \"quorum-server\" and " +
		"session_prefix \"\", each with policy write", nil, true},
	{"ACL not found", "the server does not know the token; one that has just started knows none yet, and refuses clients without one as well", nil, true},
	{"Invalid Session TTL", "the servers' session_ttl_min is longer than the store's MinTTL", quorum.ErrInvalidTTL, true},
	{"Consul Enterprise feature", "the client asks for a namespace or partition, which this server does not have; make one without",
		quorum.ErrUnsupported, true},
	{"too large", "the name has too many readers for one transaction of this server", nil, true},
	{"No path to datacenter", "there is no such datacenter", nil, true},
	{"No cluster leader", "the cluster has no leader now; are enough of its servers up?", nil, false},
}

// explain says what an error of the client means, and whether the request that
// came to it provably had no effect.
func explain(err error) (_ error, never bool) {
	if err == nil {
		return nil, false
	}
	text := err.Error()
	for _, r := range refusals {
		if !strings.Contains(text, r.text) {
			continue
		}
		if r.is != nil {
			return fmt.Errorf("%w: %s: %w", r.is, r.todo, err), r.never
		}
		return fmt.Errorf("%s: %w", r.todo, err), r.never
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return err, true
	}
	return err, false
}

// denied reports whether the token may not do what was asked.
func denied(err error) bool {
	if err == nil {
		return false
	}
	var status api.StatusError
	return errors.As(err, &status) && status.Code == http.StatusForbidden || strings.Contains(err.Error(), "Permission denied")
}

// bound sets the limit of one call.
func bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

// Advice implements [quorum.Adviser].
func (s *Store) Advice() []string {
	if !s.identity.hidden.Load() {
		return nil
	}
	return []string{"the token may not write the key " + identityKey + ", so that one cluster under two names of a set " +
		"is not noticed; allow it key \"" + identityKey + "\" with policy write"}
}

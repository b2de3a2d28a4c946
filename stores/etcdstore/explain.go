package etcdstore

import (
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
)

// refusals are the errors by which a server refuses a request before it does
// anything of it, and what to do about each.
var refusals = []struct {
	err  error
	todo string
}{
	{rpctypes.ErrNoSpace, "the database has reached its quota and takes no more writes; compact it, defragment it and " +
		"disarm the alarm (etcdctl compaction, defrag, alarm disarm), and set --auto-compaction-retention"},
	{rpctypes.ErrPermissionDenied, "the user may not do this; grant its role readwrite on the keys that begin with the prefix and a slash"},
	{rpctypes.ErrUserEmpty, "the server asks for a user and the client has none"},
	{rpctypes.ErrAuthFailed, "the server refuses the user or the password"},
	{rpctypes.ErrInvalidAuthToken, "the server does not take the client's token; it is renewed with the next request"},
	{rpctypes.ErrAuthOldRevision, "users or roles have just changed; the next request sees them"},
	{rpctypes.ErrTooManyRequests, "the server is overloaded: it has too many requests that are not applied"},
	{rpctypes.ErrRequestTooLarge, "raise the server's --max-request-bytes"},
	{rpctypes.ErrTooManyOps, "too many readers were to be removed at once; raise the server's --max-txn-ops"},
	{rpctypes.ErrNotCapable, "the server's version is too old"},
	{rpctypes.ErrNoLeader, "the cluster has no leader: too few of its members are up"},
	{rpctypes.ErrLeaseNotFound, "the lease is over"},
}

// definite reports whether an error of a transaction says that nothing of it
// was done.
func definite(err error) bool {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return true
		}
	}
	return false
}

// explain says what to do about an error of the client.
func explain(err error) error {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return fmt.Errorf("%s: %w", r.todo, err)
		}
	}
	return err
}

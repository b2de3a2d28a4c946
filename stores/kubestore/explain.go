package kubestore

import (
	"errors"
	"fmt"
	"net"

	kerrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/quorumlock/quorum"
)

// refusals are what a server refuses before it does anything, and what to do
// about each.
var refusals = []struct {
	is   func(error) bool
	todo string
}{
	{kerrors.IsForbidden, "the client may not do this; give it get, list, watch, create, update and delete on leases of " +
		"coordination.k8s.io in the namespace, see docs/stores.md"},
	{kerrors.IsUnauthorized, "the API server does not accept the client's credentials; are they expired?"},
	{kerrors.IsTooManyRequests, "the API server is overloaded, or limits these clients by its priority and fairness settings"},
	{kerrors.IsNotFound, "there is no such namespace, or the server does not serve coordination.k8s.io/v1"},
	{kerrors.IsRequestEntityTooLargeError, "the name has too many readers for one Lease"},
	{kerrors.IsInvalid, "the API server does not take the Lease; has the name too many readers for one?"},
}

// explain says what an error of the client means, and whether the request that
// came to it provably had no effect.
func explain(err error) (_ error, never bool) {
	if err == nil {
		return nil, false
	}
	for _, r := range refusals {
		if r.is(err) {
			return fmt.Errorf("%s: %w", r.todo, err), true
		}
	}
	switch {
	case kerrors.IsServiceUnavailable(err), kerrors.IsInternalError(err):
		return fmt.Errorf("the API server cannot answer now; does its etcd run? %w", err), false
	case kerrors.IsTimeout(err), kerrors.IsServerTimeout(err):
		return fmt.Errorf("the API server did not finish in time: %w", err), false
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return err, true
	}
	return err, false
}

// wrap says what was being done to which key.
func (s *Store) wrap(v verb, key string, err error) error {
	if key == "" {
		return fmt.Errorf("kube store %s: %v the set: %w", s.name, v, err)
	}
	return fmt.Errorf("kube store %s: %v %q: %w", s.name, v, key, err)
}

// unsent is an error of a request that left nothing.
func (s *Store) unsent(v verb, key string, err error) error {
	err, _ = explain(err)
	return quorum.Undelivered(s.wrap(v, key, err))
}

package kubestore

import (
	"context"
	"time"

	coordination "k8s.io/api/coordination/v1"
	kerrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const resource = "leases"

// ask prepares a request that is sent once: a client that repeats one by itself
// would spend the call's limit where this package, and its caller, know better.
func (s *Store) ask(request *rest.Request) *rest.Request {
	return request.Namespace(s.namespace).Resource(resource).MaxRetries(0)
}

// get reads a Lease, nil where there is none. A read without a resource version
// is linearizable.
func (s *Store) get(ctx context.Context, name string) (*object, error) {
	var l coordination.Lease
	err := s.ask(s.client.Get()).Name(name).Do(ctx).Into(&l)
	switch {
	case kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return newObject(&l)
}

// put creates a Lease, or replaces the one of that resource version. It returns
// nil and no error when another one was there first.
func (s *Store) put(ctx context.Context, l *coordination.Lease) (*object, error) {
	var request *rest.Request
	if l.ResourceVersion == "" {
		request = s.ask(s.client.Post())
	} else {
		request = s.ask(s.client.Put()).Name(l.Name)
	}
	var written coordination.Lease
	err := request.Param("fieldManager", "quorum").Body(l).Do(ctx).Into(&written)
	switch {
	case kerrors.IsConflict(err), kerrors.IsAlreadyExists(err), l.ResourceVersion != "" && kerrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return newObject(&written)
}

// remove deletes a Lease if it is still as it was read.
func (s *Store) remove(ctx context.Context, o *object) (done bool, err error) {
	only := &meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &o.lease.UID, ResourceVersion: &o.lease.ResourceVersion}}
	err = s.ask(s.client.Delete()).Name(o.lease.Name).Body(only).Do(ctx).Error()
	if kerrors.IsConflict(err) || kerrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// list reads Leases by a selector of fields or labels, page by page.
func (s *Store) list(ctx context.Context, kind, selector, next string) (*coordination.LeaseList, error) {
	var l coordination.LeaseList
	request := s.ask(s.client.Get()).Param(kind, selector).Param("limit", "200")
	if next != "" {
		request.Param("continue", next)
	}
	return &l, request.Do(ctx).Into(&l)
}

// bound sets the limit of one call.
func bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	if limit <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, limit)
}

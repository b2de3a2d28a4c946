package etcdstore

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/connectivity"

	"github.com/quorumlock/quorum"
)

// opened makes the client of a DSN when it is first needed: with a password
// clientv3.New asks the server to check it, and a set must open also while one
// of its servers is down.
type opened struct {
	turn   chan struct{} // holds one: who holds it may use the rest
	config clientv3.Config
	client *clientv3.Client
	closed bool
}

var errClosed = errors.New("the store is closed")

// reach returns the client, and makes it if there is none.
func (o *opened) reach(ctx context.Context) (*clientv3.Client, error) {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if o.closed {
		return nil, errClosed
	}
	if o.client == nil {
		client, err := clientv3.New(o.config)
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		o.client = client
	}
	return o.client, nil
}

func (o *opened) close() error {
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	o.closed = true
	if o.client == nil {
		return nil
	}
	client := o.client
	o.client = nil
	return client.Close()
}

// errNoConnection is that of a client whose servers are down or refuse it.
var errNoConnection = errors.New("no server of the cluster can be reached; the next call tries again")

// connected waits until the client has a connection, and fails when it cannot
// get one. Where it has failed lately it dials again for the next call:
// gRPC would let up to minutes pass.
func (s *Store) connected(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return quorum.Undelivered(err)
	}
	if s.opened != nil {
		client, err := s.opened.reach(ctx)
		if err != nil {
			return quorum.Undelivered(explain(err))
		}
		s.made.Store(client)
	}
	conn := s.client().ActiveConnection()
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Shutdown:
			return quorum.Undelivered(errClosed)
		case connectivity.TransientFailure:
			conn.ResetConnectBackoff()
			return quorum.Undelivered(errNoConnection)
		case connectivity.Idle:
			conn.Connect()
		}
		if !conn.WaitForStateChange(ctx, state) {
			return quorum.Undelivered(ctx.Err())
		}
	}
}

package etcdstore_test

import (
	"context"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/quorumlock/quorum/internal/testserver"
)

// wire sees what a client sends, each request once, and can change it or do
// something before.
type wire struct {
	mu     sync.Mutex
	sent   []string
	before func(txn *etcdserverpb.TxnRequest) // a transaction that writes
	lax    atomic.Bool                        // a read was serializable
}

// wired returns a client whose requests go over a wire.
func wired(t *testing.T, nodes ...*testserver.EtcdNode) (*wire, *clientv3.Client) {
	t.Helper()
	w := &wire{}
	var config clientv3.Config
	for _, n := range nodes {
		config.Endpoints = append(config.Endpoints, n.Addr)
	}
	config.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(w.unary), grpc.WithChainStreamInterceptor(w.stream)}
	return w, clientOf(t, config)
}

func (w *wire) unary(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	name := path.Base(method)
	w.mu.Lock()
	before := w.before
	w.mu.Unlock()
	if txn, ok := req.(*etcdserverpb.TxnRequest); ok {
		if name = "read"; len(txn.Compare) > 0 {
			name = "txn"
			if before != nil {
				before(txn)
			}
		}
	}
	switch r := req.(type) {
	case *etcdserverpb.RangeRequest:
		w.look(r)
	case *etcdserverpb.TxnRequest:
		for _, op := range slices.Concat(r.Success, r.Failure) {
			w.look(op.GetRequestRange())
		}
	}
	w.note(name)
	return invoke(ctx, method, req, reply, cc, opts...)
}

func (w *wire) look(r *etcdserverpb.RangeRequest) {
	if r.GetSerializable() {
		w.lax.Store(true)
	}
}

func (w *wire) stream(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	w.note(path.Base(method))
	return open(ctx, desc, cc, method, opts...)
}

func (w *wire) note(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, name)
}

// take returns what was sent since the last call, in the order of the alphabet.
func (w *wire) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	slices.Sort(sent)
	return strings.Join(sent, " ")
}

// once does f before the next transaction that writes.
func (w *wire) once(f func(txn *etcdserverpb.TxnRequest)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = func(txn *etcdserverpb.TxnRequest) {
		w.mu.Lock()
		w.before = nil
		w.mu.Unlock()
		f(txn)
	}
}

// without takes the compares of a key out of a transaction: what a store would
// send that forgot them.
func without(txn *etcdserverpb.TxnRequest, key string) {
	txn.Compare = slices.DeleteFunc(txn.Compare, func(c *etcdserverpb.Compare) bool { return string(c.Key) == key })
}

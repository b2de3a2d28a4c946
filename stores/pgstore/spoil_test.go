//go:build linux

package pgstore_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/stores/pgstore"
)

// brokenConn loses a reply now and then: what was asked has been done, and who
// asked does not know.
type brokenConn struct {
	net.Conn
	lost *atomic.Int32
}

func (c brokenConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && rand.IntN(60) == 0 {
		c.lost.Add(1)
		_ = c.Close()
		return 0, errors.New("the connection broke")
	}
	return n, err
}

// TestBrokenConnectionsNeverLetTwoIn has goroutines take one lock through
// connections that lose replies.
func TestBrokenConnectionsNeverLetTwoIn(t *testing.T) {
	_, schema, steady := fresh(t)
	var lost atomic.Int32
	config, err := pgxpool.ParseConfig(shared(t).URL() + "&pool_max_conns=10")
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return brokenConn{c, &lost}, err
	}
	p, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	s, err := pgstore.New("a", p, pgstore.Schema(schema+"_2"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(s, quorum.TTL(3*time.Second), quorum.MaxTTL(3*time.Second), quorum.CallLimit(time.Second))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(context.WithoutCancel(t.Context())) }()
	await(t, "tables and a set declared new, over such connections", func() bool {
		return s.Setup(t.Context()) == nil && l.Init(t.Context()) == nil
	})
	var guard acceptance.Guard
	var wait sync.WaitGroup
	for range 6 {
		wait.Go(func() {
			for range 15 {
				lease, err := l.Acquire(t.Context(), "job")
				if err != nil {
					t.Error(err)
					return
				}
				guard.Enter(lease.Token())
				_ = steady.Ping(t.Context()) // so that another one may come in
				guard.Leave()
				_ = lease.Release(t.Context()) // its reply may be lost as well
			}
		})
	}
	wait.Wait()
	guard.Judge(t, 6*15)
	if lost.Load() == 0 {
		t.Error("no reply was lost")
	}
	t.Logf("%d replies were lost", lost.Load())
}

//go:build unix

package bench

import (
	"context"
	"errors"
	"time"

	"github.com/hashicorp/consul/api"
	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"

	"github.com/quorumlock/quorum/internal/testserver"
)

// postgresRow is an advisory lock of a session: who waits, waits in the server.
var postgresRow = row{name: "PostgreSQL, advisory lock", lone: true, open: func(s *servers) locks {
	config, err := pgxpool.ParseConfig("postgres://postgres@" + s.other("postgres") + "/postgres?sslmode=disable")
	if err != nil {
		s.tb.Fatal(err)
	}
	config.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(s.tb.Context(), config)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(pool.Close)
	return postgresLocks{pool}
}}

type postgresLocks struct{ *pgxpool.Pool }

func (p postgresLocks) acquire(ctx context.Context, key string) (held, error) {
	c, err := p.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "select pg_advisory_lock(hashtextextended($1, 0))", key); err != nil {
		c.Release()
		return nil, err
	}
	return &postgresHeld{c, key}, nil
}

type postgresHeld struct {
	conn *pgxpool.Conn
	key  string
}

func (h *postgresHeld) Release(ctx context.Context) error {
	defer h.conn.Release()
	_, err := h.conn.Exec(ctx, "select pg_advisory_unlock(hashtextextended($1, 0))", h.key)
	return err
}

// etcdRow is a mutex of etcd's own client, of one session.
var etcdRow = row{name: "etcd, concurrency", lone: true, open: func(s *servers) locks {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.other("etcd")}, Context: s.tb.Context()})
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { _ = c.Close() })
	session, err := concurrency.NewSession(c, concurrency.WithTTL(int(ttl.Seconds())))
	if err != nil {
		s.tb.Fatal(err)
	}
	return etcdLocks{session}
}}

type etcdLocks struct{ *concurrency.Session }

func (e etcdLocks) acquire(ctx context.Context, key string) (held, error) {
	m := concurrency.NewMutex(e.Session, key)
	return etcdHeld{m}, m.Lock(ctx)
}

type etcdHeld struct{ *concurrency.Mutex }

func (h etcdHeld) Release(ctx context.Context) error { return h.Unlock(ctx) }

// consulRow is a lock of Consul's own client, which makes a session for each.
var consulRow = row{name: "Consul, api", lone: true, open: func(s *servers) locks {
	c, err := api.NewClient(&api.Config{Address: s.other("consul")})
	if err != nil {
		s.tb.Fatal(err)
	}
	id := ""
	for i := 0; err == nil && id == "" && i < 200; i++ { // a server that has just started knows itself a moment later
		if id, _, err = c.Session().CreateNoChecks(nil, nil); err != nil {
			err = nil
			<-time.After(50 * time.Millisecond)
		}
	}
	_, _ = c.Session().Destroy(id, nil)
	return consulLocks{c}
}}

type consulLocks struct{ *api.Client }

func (c consulLocks) acquire(ctx context.Context, key string) (held, error) {
	l, err := c.LockOpts(&api.LockOptions{Key: key, SessionTTL: ttl.String()})
	if err != nil {
		return nil, err
	}
	lost, err := l.Lock(ctx.Done())
	if err == nil && lost == nil {
		err = errors.Join(errors.New("consul: not locked"), ctx.Err())
	}
	return consulHeld{l}, err
}

type consulHeld struct{ *api.Lock }

func (h consulHeld) Release(context.Context) error { return h.Unlock() }

// other starts a server of another kind, once a setting.
func (s *servers) other(kind string) (addr string) {
	s.tb.Helper()
	if addr, ok := s.others[kind]; ok {
		return addr
	}
	switch kind {
	case "postgres":
		addr = testserver.Postgres(s.tb).Addr
	case "etcd":
		addr = testserver.Etcd(s.tb, testserver.EtcdFlags("--unsafe-no-fsync")).Addr
	case "consul":
		addr = testserver.Consul(s.tb).Addr
	}
	s.others[kind] = s.reach(addr)
	return s.others[kind]
}

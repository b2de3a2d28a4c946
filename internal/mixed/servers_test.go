//go:build linux

package mixed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
	"github.com/quorumlock/quorum/stores/etcdstore"
	"github.com/quorumlock/quorum/stores/pgstore"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// ttl is short and still one that every kind takes.
const ttl = 2 * time.Second

var openers = []quorum.Opener{redisstore.Opener(), etcdstore.Opener(), consulstore.Opener(), pgstore.Opener()}

// server is one of any kind. A part of a test has a namespace of its own in it.
type server struct {
	kind   string
	dsn    func(name, space string) string
	forget func(ctx context.Context, space string) error // everything in a namespace
}

var spaces atomic.Int32

func newSpace() string { return fmt.Sprintf("space_%d", spaces.Add(1)) }

// member opens a store by its DSN, closed with the test.
func (s server) member(t *testing.T, name, space string) acceptance.Member {
	t.Helper()
	dsn, err := url.Parse(s.dsn(name, space))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range openers {
		for _, scheme := range o.Schemes {
			if scheme != dsn.Scheme {
				continue
			}
			store, err := o.Open(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if c, ok := store.(interface{ Close() error }); ok {
					_ = c.Close()
				}
			})
			return acceptance.Member{Store: store, Forget: func() {
				if err := s.forget(t.Context(), space); err != nil {
					t.Fatal(err)
				}
			}}
		}
	}
	t.Fatalf("no opener for %s", dsn.Scheme)
	return acceptance.Member{}
}

func redisServer(t *testing.T) server {
	node := testserver.Redis(t)
	client := redis.NewClient(&redis.Options{Addr: node.Addr})
	t.Cleanup(func() { _ = client.Close() })
	return server{
		kind: "redis",
		dsn:  func(name, space string) string { return "redis://" + node.Addr + "?name=" + name + "&prefix=" + space },
		forget: func(ctx context.Context, _ string) error {
			return client.FlushAll(ctx).Err() // the parts of a test come one after another
		},
	}
}

func etcdServer(t *testing.T) server {
	node := testserver.Etcd(t)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{node.Addr}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return server{
		kind: "etcd",
		dsn:  func(name, space string) string { return "etcd://" + node.Addr + "?name=" + name + "&prefix=" + space },
		forget: func(ctx context.Context, space string) error {
			_, err := client.Delete(ctx, space, clientv3.WithPrefix())
			return err
		},
	}
}

func consulServer(t *testing.T) server {
	node := testserver.Consul(t)
	return server{
		kind: "consul",
		dsn: func(name, space string) string {
			return "consul://" + node.Addr + "?name=" + name + "&prefix=" + space + "&min-ttl=1s"
		},
		forget: func(ctx context.Context, space string) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodDelete, "http://"+node.Addr+"/v1/kv/"+space+"?recurse", nil)
			if err != nil {
				return err
			}
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			if reply.StatusCode != http.StatusOK {
				err = errors.New(reply.Status)
			}
			return errors.Join(err, reply.Body.Close())
		},
	}
}

func postgresServer(t *testing.T) server {
	node := testserver.Postgres(t)
	return server{
		kind: "postgres",
		dsn:  func(name, space string) string { return node.URL() + "&name=" + name + "&schema=" + space },
		forget: func(ctx context.Context, space string) error {
			c, err := pgx.Connect(ctx, node.URL())
			if err != nil {
				return err
			}
			_, err = c.Exec(ctx, "truncate "+space+".lock")
			return errors.Join(err, c.Close(ctx))
		},
	}
}

// members opens one store on each server, all in one new namespace, and makes
// the tables that a store has first to make.
func members(t *testing.T, servers []server) []acceptance.Member {
	t.Helper()
	space := newSpace()
	var all []acceptance.Member
	for i, s := range servers {
		m := s.member(t, fmt.Sprintf("%s-%d", s.kind, i), space)
		if pg, ok := m.Store.(*pgstore.Store); ok {
			if err := pg.Setup(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, m)
	}
	return all
}

func kindsOf(servers []server) string {
	var kinds []string
	for _, s := range servers {
		kinds = append(kinds, s.kind)
	}
	return strings.Join(kinds, ", ")
}

package etcdstore_test

import (
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
	"github.com/quorumlock/quorum/storetest"
)

// conform runs the suite in real time, all checks side by side on one server,
// each under a prefix of its own.
func conform(t *testing.T, clients func() *clientv3.Client) {
	t.Helper()
	var prefixes sync.Map
	var n atomic.Int32
	first, second := clients(), clients()
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			prefix := fmt.Sprintf("check-%d", n.Add(1))
			s := store(t, first, etcdstore.Prefix(prefix))
			prefixes.Store(s, prefix)
			return s
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			prefix, _ := prefixes.Load(first)
			return store(t, second, etcdstore.Prefix(prefix.(string)))
		},
		// Emptied by hand; a restart of the process forgets nothing.
		Restart: func(t *testing.T, s quorum.Store) {
			prefix, _ := prefixes.Load(s)
			if _, err := first.Delete(t.Context(), prefix.(string)+"/", clientv3.WithPrefix()); err != nil {
				t.Fatal(err)
			}
		},
		Parallel: true,
	})
}

// TestMain lets more checks run side by side than there are processors: they
// wait for leases to end.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestR54Conformance(t *testing.T) {
	node := testserver.Etcd(t)
	conform(t, func() *clientv3.Client { return client(t, node) })
}

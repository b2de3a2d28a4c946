package kubestore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/kubestore"
	"github.com/quorumlock/quorum/storetest"
)

// TestConformanceKubernetes runs the suite on the real Lease registry, each
// check under a prefix of its own, as a user that may do no more than the
// documentation says. The clock of its clients is the suite's, since no server's
// ends anything.
func TestConformanceKubernetes(t *testing.T) {
	node := testserver.Leases(t, testserver.LeasesRole(documented(t)))
	kubeconfig := node.Kubeconfig(node.User)
	var prefixes sync.Map
	var mu sync.Mutex
	var stores []*times
	open := func(t *testing.T, prefix string) *kubestore.Store {
		s := open(t, kubeconfig, "prefix", prefix)
		mu.Lock()
		defer mu.Unlock()
		stores = append(stores, newTimes(s))
		return s
	}
	storetest.Run(t, storetest.Factory{
		New: func(t *testing.T) quorum.Store {
			prefix := fmt.Sprintf("check-%d", len(stores))
			s := open(t, prefix)
			prefixes.Store(s, prefix)
			return s
		},
		Second: func(t *testing.T, first quorum.Store) quorum.Store {
			prefix, _ := prefixes.Load(first)
			return open(t, prefix.(string))
		},
		Advance: func(d time.Duration) {
			for _, x := range stores {
				x.Advance(d)
				x.wall = x.wall.Add(d)
			}
		},
	})
}

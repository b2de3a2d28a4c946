//go:build unix

package kubestore_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/acceptance"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// spaces are three namespaces of one API server, which a set takes for three
// servers.
func spaces(kubeconfig string) (dsns []string) {
	for i := range 3 {
		query := url.Values{"kubeconfig": {kubeconfig}, "name": {fmt.Sprint("node", i)}}
		dsns = append(dsns, fmt.Sprintf("kube://space-%d?%s", i, query.Encode()))
	}
	return dsns
}

func openSet(ctx context.Context, dsns []string) (*quorum.CombinedStore, error) {
	return quorum.Open(ctx, dsns, kubestore.Opener())
}

// TestSuiteOfSets is what a set of any kind must show.
func TestSuiteOfSets(t *testing.T) {
	node := testserver.Leases(t)
	c := client(t, node, nil)
	n := 0
	acceptance.Suite{
		New: func(t *testing.T) (members []acceptance.Member) {
			for range 3 {
				n++
				space := fmt.Sprint("suite-", n)
				s := open(t, node.Kubeconfig(node.Admin), "namespace", space, "name", fmt.Sprint("node", n%3))
				members = append(members, acceptance.Member{Store: s, Forget: func() {
					if err := c.Delete().Namespace(space).Resource("leases").Do(t.Context()).Error(); err != nil {
						t.Fatal(err)
					}
				}})
			}
			return members
		},
		TTL: 2 * time.Second,
	}.Run(t)
}

// TestTenProcessesNeverOverlap has ten processes take one lock, while the API
// server is killed and started again.
func TestTenProcessesNeverOverlap(t *testing.T) {
	soak := acceptance.Soak{
		Processes: 10, Rounds: 4, Open: openSet,
		Options: []quorum.Option{
			quorum.TTL(8 * time.Second), quorum.MaxTTL(8 * time.Second), quorum.CallLimit(2 * time.Second),
			quorum.Backoff(100*time.Millisecond, 400*time.Millisecond),
		},
	}
	if !acceptance.Worker() {
		node := testserver.Leases(t)
		soak.DSNs = spaces(node.Kubeconfig(node.Admin))
		soak.Trouble = func(entered func() int) {
			acceptance.Poll(t, time.Minute, "a third of the work", func() bool { return entered() >= 12 })
			node.Restart()
		}
	}
	soak.Run(t)
}

// TestR10R14R31TwoProcesses: one is killed, one hands its lease over.
func TestR10R14R31TwoProcesses(t *testing.T) {
	p := acceptance.Parting{Open: openSet, Options: []quorum.Option{
		quorum.TTL(6 * time.Second), quorum.MaxTTL(6 * time.Second), quorum.CallLimit(time.Second),
	}}
	if !acceptance.Worker() {
		node := testserver.Leases(t)
		p.DSNs = spaces(node.Kubeconfig(node.Admin))
	}
	p.Run(t)
}

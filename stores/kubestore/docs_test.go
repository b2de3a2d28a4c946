package kubestore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// TestR83DocumentedLimits compares the page about stores with what the store
// says of itself.
func TestR83DocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := kubestore.New("a", &rest.RESTClient{}, "locks")
	if err != nil {
		t.Fatal(err)
	}
	want := quorum.Limits{
		MinTTL: kubestore.MinTTL, MaxKey: 512, Reach: quorum.ReachCluster, Shares: true, Watches: true, Forgets: true,
		Observe: kubestore.MinTTL,
	}
	if got := s.Limits(); got != want {
		t.Errorf("Limits = %+v, want %+v", got, want)
	}
	for _, row := range []string{
		fmt.Sprintf("| Kubernetes | %v, exact | each client's own | yes | yes | nothing is forgotten |", want.MinTTL),
		"up to twice the TTL for a newcomer | 3, 1, 2, 1 | get, list, watch, create, update and delete on leases of one namespace |",
		fmt.Sprintf("| TTLs | from %v, exact |", want.MinTTL),
		"| after kill -9 of the holder | free after the TTL for a client that had seen the last renewal, after up to twice the TTL for one that came later |", // TestR14VoteEndsByTheClockThatWatchedIt
		fmt.Sprintf("| names | any UTF-8 without NUL of 1 to %d bytes, kept by a digest |", want.MaxKey),                                                      // the suite
		"| round trips | Acquire 3, of a fresh name 5, refused 1, Extend 2, Release 1 |",                                                                      // TestRoundTrips
		"verbs: [get, list, watch, create, update, delete]",                                                                                                   // TestConformanceKubernetes
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/stores.md lacks the row %q", row)
		}
	}
}

package consulstore_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// TestR83DocumentedLimits compares the page about stores with what the store
// says of itself.
func TestR83DocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := consulstore.New("a", client(t, "127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	want := quorum.Limits{
		MinTTL: consulstore.SessionMin, MaxKey: 512, Reach: quorum.ReachCluster, Shares: true, Watches: true, Queues: true, Forgets: true,
	}
	if got := s.Limits(); got != want {
		t.Errorf("Limits = %+v, want %+v", got, want)
	}
	for _, row := range []string{
		fmt.Sprintf("| TTLs | %v to %.0fh, exact;", want.MinTTL, consulstore.SessionMax.Hours()),
		"| after kill -9 of the holder | free after twice the TTL |",                                                       // TestR14KilledHolderFreesTheName
		fmt.Sprintf("| names | any UTF-8 without NUL of 1 to %d bytes |", want.MaxKey),                                     // the suite
		"| round trips | Acquire 2, refused 1, Extend 1, an Extend that raises the token 2, Release 1,",                    // TestRoundTrips
		"| permissions | `key_prefix \"quorum/\"`, `key \"quorum-server\"` and `session_prefix \"\"`, each with `write` |", // TestConformanceOpened
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/stores.md lacks the row %q", row)
		}
	}
}

//go:build linux

package sqlitestore

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
)

// TestR83DocumentedLimits compares the page about stores with what the store
// says of itself.
func TestR83DocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	want := quorum.Limits{
		MinTTL: 10 * time.Millisecond, Grain: time.Microsecond, Reach: quorum.ReachHost, Shares: true, Watches: true, Queues: true,
	}
	if got := fresh(t, clock.System()).Limits(); got != want {
		t.Errorf("Limits = %+v, want %+v", got, want)
	}
	for _, text := range []string{
		fmt.Sprintf("| SQLite | %v, %v | the machine's uptime with sleep | yes | yes | no server: a reboot ends all leases, "+
			"and tokens go on above | TTL |", want.MinTTL, want.Grain), // TestReboot…, TestR14…
		fmt.Sprintf("from %d to %v.", lookFirst.Milliseconds(), strings.Replace(lookMost.String(), "ms", " ms", 1)),
	} {
		if !strings.Contains(string(page), text) {
			t.Errorf("docs/stores.md lacks %q", text)
		}
	}
}

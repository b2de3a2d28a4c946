//go:build linux

package mixed

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestR83RowsOfAllKinds holds the rows in docs/stores.md to what the stores that
// speak to servers say of themselves. No server is asked.
func TestR83RowsOfAllKinds(t *testing.T) {
	text, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	yes := map[bool]string{true: "yes", false: "no"}
	for kind, dsn := range map[string]string{
		"Redis": "redis://h:1?name=a", "etcd": "etcd://h:1?name=a", "Consul": "consul://h:1?name=a", "PostgreSQL": "postgres://u@h:1/d?name=a",
	} {
		var cells []string
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "| "+kind+" |") {
				for cell := range strings.SplitSeq(strings.Trim(line, "|\n"), "|") {
					cells = append(cells, strings.TrimSpace(cell))
				}
			}
		}
		if len(cells) != 9 {
			t.Errorf("%s has a row of %d cells, want 9: %q", kind, len(cells), cells)
			continue
		}
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range openers {
			if !slices.Contains(o.Schemes, u.Scheme) {
				continue
			}
			s, err := o.Open(t.Context(), u)
			if err != nil {
				t.Fatal(err)
			}
			l := s.Limits()
			grain := l.Grain.String()
			if l.Grain == 0 {
				grain = "exact"
			}
			for i, want := range map[int]string{
				1: fmt.Sprintf("%v, %s", l.MinTTL, grain), 3: yes[l.Shares], 4: yes[l.Watches],
			} {
				if cells[i] != want {
					t.Errorf("%s: cell %d of the row says %q, and the store %q", kind, i+1, cells[i], want)
				}
			}
			if c, ok := s.(interface{ Close() error }); ok {
				_ = c.Close()
			}
		}
	}
}

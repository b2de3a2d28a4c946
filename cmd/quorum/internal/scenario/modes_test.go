package scenario

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quorumlock/quorum/internal/sim"
	"github.com/quorumlock/quorum/internal/simpage"
)

var update = flag.Bool("update", false, "rewrite the golden traces")

// A picture shows what its trace says, so a change of behaviour must show as a
// change of these files. Each mode fails the checker that it names; those
// that name none fail none.
func TestR84ModesGolden(t *testing.T) {
	t.Parallel()
	for _, name := range Modes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Play(name)
			if err != nil {
				t.Fatal(err)
			}
			r := m.Report
			broken := slices.ContainsFunc(r.Violations, func(v sim.Violation) bool { return v.Checker.String() == m.Breaks })
			if broken != (m.Breaks != "") || !broken && len(r.Violations) > 0 {
				t.Errorf("it breaks %v, and should break %q", r.Violations, m.Breaks)
			}
			var got bytes.Buffer
			if err := simpage.Text(&got, r.Trace, r.Violations); err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", name+".txt")
			if *update {
				if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("the trace has changed; look at the diff after go test -run TestR84ModesGolden ./internal/scenario -update")
			}
		})
	}
}

// A failure mode has one name: that of its history, also where a world was made
// for its picture.
func TestR84WorldsHaveTheNamesOfHistories(t *testing.T) {
	t.Parallel()
	for _, name := range worlds() {
		if !slices.Contains(sim.Scenarios(), name) {
			t.Errorf("%s is no history of the simulator", name)
		}
	}
}

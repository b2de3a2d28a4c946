package sim

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the scenarios come to into testdata")

// Every failure mode of docs/failure-modes.md is a file that says what is done
// and, after four dashes, what came of it.
func TestScenarios(t *testing.T) {
	for _, name := range Scenarios() {
		t.Run(name, func(t *testing.T) {
			file := "testdata/" + name + ".txt"
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := ParseScenario(string(text))
			if err != nil {
				t.Fatal(err)
			}
			r := s.Play()
			if again := s.Play(); again.Hash != r.Hash {
				t.Errorf("played twice, it was %x and %x", r.Hash, again.Hash)
			}
			var broken []string
			for _, v := range r.Violations {
				if !slices.Contains(broken, v.Checker.String()) {
					broken = append(broken, v.Checker.String())
				}
			}
			if !slices.Equal(broken, s.Breaks) {
				t.Errorf("it breaks %q, and should break %q: %v", broken, s.Breaks, r.Violations)
			}
			input, want, ok := strings.Cut(string(text), "\n----\n")
			if !ok {
				t.Fatal("no line of four dashes")
			}
			got := s.Tell(r)
			if *rewrite {
				if err := os.WriteFile(file, []byte(input+"\n----\n"+got), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got != want {
				t.Errorf("it came to\n%s\nand used to come to\n%s", got, want)
			}
		})
	}
}

package core_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write what the machines say into testdata/*.txt")

// TestGolden plays the conversations in testdata. A conversation is a list of
// blocks: commands, a line of four dashes, and what the machine answers; see
// talk_test.go for the commands. Lines that begin with # say what to look at.
//
//	go test ./internal/core -run TestGolden -rewrite
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			got, err := play(string(text))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got == string(text) {
				return
			}
			if *rewrite {
				if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			t.Errorf("%s: %s\nread the difference; if the new answer is right, run with -rewrite", name, firstDifference(string(text), got))
		})
	}
}

// play runs a conversation and returns it with the answers as they are.
func play(text string) (string, error) {
	var out strings.Builder
	w := &talk{}
	answers := false // reading old answers, which are dropped
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case line == "":
			answers = false
			out.WriteString("\n")
		case answers:
		case line == "----":
			answers = true
			out.WriteString("----\n" + w.said())
		default:
			out.WriteString(line + "\n")
			if strings.HasPrefix(line, "#") {
				continue
			}
			if err := w.command(strings.Fields(line)); err != nil {
				return "", fmt.Errorf("line %d: %q: %v", i+1, line, err)
			}
		}
	}
	return out.String(), nil
}

func firstDifference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			return fmt.Sprintf("line %d:\n  want %q\n  got  %q", i+1, x, y)
		}
	}
	return "no difference"
}

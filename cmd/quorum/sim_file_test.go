package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/quorum/cmd/quorum/internal/scenario"
)

// write makes a file of the test's own.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The example of docs/simulating.md runs as the page says.
func TestSimFileOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/simulating.md")
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(page)
	if example == nil {
		t.Fatal("docs/simulating.md has no example")
	}
	file := write(t, "world.yaml", string(example[1]))
	code, out, errs := call(t, "sim", "--file", file, "--seeds", "40", "--seed", "1")
	if code != 0 || !regexp.MustCompile(`(?m)^faults +40 partition, 40 restart$`).MatchString(out) {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
	_, first, _ := call(t, "sim", "--file", file, "--seed", "7", "--trace")
	_, again, _ := call(t, "sim", "--file", file, "--seed", "7", "--trace")
	if first != again || !strings.Contains(first, "FAULT: client 0 and stores a c cannot reach each other for 8 s") {
		t.Errorf("the trace is\n%s\nand again\n%s", first, again)
	}
	html := filepath.Join(t.TempDir(), "world.html")
	if code, out, errs = call(t, "sim", "explain", "--file", file, "-o", html); code != 0 {
		t.Errorf("explain: code %d\n%s%s", code, out, errs)
	}
	text, err := os.ReadFile(html)
	if err != nil || !strings.Contains(string(text), "<h1>The holder is cut off while a store restarts</h1>") {
		t.Errorf("the page: %v\n%.300s", err, text)
	}
	for _, name := range append(scenario.Modes(), scenario.Mistakes()...) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/simulating.md does not name %s", name)
		}
	}
	for _, kind := range scenario.Kinds() {
		if !strings.Contains(string(page), "`"+kind+"`") {
			t.Errorf("docs/simulating.md does not name the fault %s", kind)
		}
	}
}

func TestSimFileTellsViolations(t *testing.T) {
	t.Parallel()
	file := write(t, "world.yaml", string(scenario.Source("naive-unknown-is-no")))
	code, out, _ := call(t, "sim", "--file", file, "--seeds", "3", "--seed", "1")
	if code != codeFailed || !strings.Contains(out, "replay: quorum sim --file "+file+" --seed 1 --trace\n") ||
		!regexp.MustCompile(`(?m)^  slow at 0s for 1\.1s, stores c, by 900ms$`).MatchString(out) {
		t.Errorf("code %d\n%s", code, out)
	}
	code, out, _ = call(t, "sim", "--file", file, "--seed", "1", "--trace")
	if code != codeFailed || !strings.Contains(out, "BROKEN: left behind: ") {
		t.Errorf("code %d\n%s", code, out)
	}
}

func TestSimFileUsage(t *testing.T) {
	t.Parallel()
	bad := write(t, "bad.yaml", "stores: 3\nfaults:\n  - {kind: crash, at: 1s, stores: [d]}\n")
	for _, tc := range []struct{ args, says string }{
		{"sim --file " + bad, `bad.yaml: faults: number 1: stores: "d" is none of a to c`},
		{"sim --file " + bad + " --stores 5", "--file says what --stores would: leave one of them out"},
		{"sim --file /nowhere.yaml", "no such file"},
		{"sim explain --file /nowhere.yaml", "no such file"},
		{"sim explain --file " + bad, `bad.yaml: faults: number 1`},
		{"sim explain nothing", `there is no failure mode "nothing": one of minority-down, `},
		{"sim explain client-pause --file " + bad, "give one failure mode, or --file"},
		{"sim explain client-pause split-vote", "give one failure mode, or --file"},
	} {
		if code, _, errs := call(t, strings.Fields(tc.args)...); code != codeUsage || !strings.Contains(errs, tc.says) {
			t.Errorf("%s: code %d, %q; want %q", tc.args, code, errs, tc.says)
		}
	}
}

func TestSimExplainLists(t *testing.T) {
	t.Parallel()
	code, out, _ := call(t, "sim", "explain")
	if lines := strings.Split(strings.TrimSpace(out), "\n"); code != 0 || len(lines) != len(scenario.Modes()) ||
		!regexp.MustCompile(`(?m)^client-pause +A holder stops for longer`).MatchString(out) {
		t.Errorf("code %d\n%s", code, out)
	}
	code, out, _ = call(t, "sim", "explain", "client-pause", "-o", "-")
	if code != 0 || !strings.HasPrefix(out, "<!DOCTYPE html>") || strings.Contains(out, "://") && !strings.Contains(out, "http://www.w3.org/2000/svg") {
		t.Errorf("code %d\n%.300s", code, out)
	}
	code, out, _ = call(t, "sim", "explain", "client-pause", "--source")
	if code != 0 || out != string(scenario.Source("client-pause")) {
		t.Errorf("code %d\n%s", code, out)
	}
}

package quorum_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Every shell block (sh) of README.md and docs/ is run by bash, from the root of
// the repository, with the command quorum in PATH; the first failure ends it.
// Where no store is named, locks lie in a directory of the test's own; the demo
// brings its own stores.
func TestR85ShellBlocksOfTheDocs(t *testing.T) {
	bin := buildCommand(t)
	ran := 0
	for _, b := range pages(t) {
		if b.language != "sh" {
			continue
		}
		if b.skip != "" {
			t.Logf("%v: skipped: %s", b, b.skip)
			continue
		}
		ran++
		t.Run(b.String(), func(t *testing.T) { runShell(t, bin, b.code) })
	}
	if ran == 0 {
		t.Error("no shell block was run")
	}
}

// buildCommand returns a folder that holds the command quorum.
func buildCommand(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = "cmd/quorum"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build cmd/quorum: %v\n%s", err, out)
	}
	return bin
}

func runShell(t *testing.T, bin, code string) {
	code = withServers(t, code)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // go run compiles
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", code)
	cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if !strings.Contains(code, "quorum demo") {
		cmd.Env = append(cmd.Env, "QUORUM_STORES=file:"+filepath.Join(t.TempDir(), "locks"))
	}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The page names every flag of every sub-command, and no others; the same holds
// for the sub-commands and the exit codes.
func TestR85CommandPageIsComplete(t *testing.T) {
	page, err := os.ReadFile("docs/command.md")
	if err != nil {
		t.Fatal(err)
	}
	quorum := filepath.Join(buildCommand(t), "quorum")
	help := func(args ...string) string {
		out, err := exec.Command(quorum, append(args, "--help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("quorum %v --help: %v\n%s", args, err, out)
		}
		return string(out)
	}
	var texts strings.Builder
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`).FindAllStringSubmatch(help(), -1) {
		if m[1] == "help" {
			continue
		}
		if !strings.Contains(string(page), "\n## quorum "+m[1]+"\n") {
			t.Errorf("docs/command.md has no section on quorum %s", m[1])
		}
		texts.WriteString(help(m[1]))
	}
	texts.WriteString(help())
	compare := func(what, pattern string) {
		t.Helper()
		found := func(text string) []string {
			var all []string
			for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
				all = append(all, m[1])
			}
			slices.Sort(all)
			return slices.Compact(all)
		}
		inHelp, inPage := found(texts.String()), found(string(page))
		if inHelp = slices.DeleteFunc(inHelp, func(s string) bool { return s == "--help" }); !slices.Equal(inHelp, inPage) {
			t.Errorf("%s: --help has %v, docs/command.md has %v", what, inHelp, inPage)
		}
	}
	compare("flags", `(--[a-z][a-z-]+)`)
	compare("exit codes", `(?m)^(?:  |\| )(\d{2,3}(?:\+n)?) `)
}

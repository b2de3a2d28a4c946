package quorum_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/testserver"
)

// Every shell block (sh) of README.md and docs/ is run by bash, from the root of
// the repository, with the command quorum in PATH; the first failure ends it.
// Where no store is named, locks lie in a directory of the test's own. The hosts
// redis-a, redis-b and redis-c stand for three real servers, new for each block.
func TestR85ShellBlocksOfTheDocs(t *testing.T) {
	bin := t.TempDir()
	build := exec.Command("go", "build", "-o", bin, ".")
	build.Dir = "cmd/quorum"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build cmd/quorum: %v\n%s", err, out)
	}
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

func runShell(t *testing.T, bin, code string) {
	for _, host := range []string{"redis-a:6379", "redis-b:6379", "redis-c:6379"} {
		if strings.Contains(code, host) {
			code = strings.ReplaceAll(code, host, testserver.Redis(t).Addr)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // go run compiles
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", code)
	cmd.Env = append(os.Environ(),
		"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"QUORUM_STORES=file:"+filepath.Join(t.TempDir(), "locks"))
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

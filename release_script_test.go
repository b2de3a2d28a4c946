package quorum_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A release is made in a clone, and a user gets its modules by their tags: the
// modules of ours from the clone, all others from the cache of this machine.
func TestReleaseScriptMakesModulesThatUsersGet(t *testing.T) {
	const version = "v0.9.1-test"
	clone, user, cache := t.TempDir(), t.TempDir(), t.TempDir()
	downloads := strings.TrimSpace(goTool(t, ".", "env", "GOMODCACHE")) + "/cache/download"
	env := append(os.Environ(), "GOWORK=off", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_AUTHOR_NAME=test", "GIT_AUTHOR_EMAIL=test@test.invalid", "GIT_COMMITTER_NAME=test", "GIT_COMMITTER_EMAIL=test@test.invalid",
		"GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=url."+clone+"/.git.insteadOf", "GIT_CONFIG_VALUE_0=https://"+ours,
		"GIT_CONFIG_KEY_1=safe.directory", "GIT_CONFIG_VALUE_1=*",
		"GOPRIVATE="+ours, "GONOSUMDB=*", "GONOSUMCHECK=1", "GOFLAGS=-mod=mod -modcacherw", "GOMODCACHE="+cache, "GOPROXY=file://"+downloads+","+strings.TrimSpace(goTool(t, ".", "env", "GOPROXY")))
	in := func(dir, name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
		return string(out)
	}

	in(".", "git", "clone", "-q", "--no-local", "--depth=1", "file://"+absolute(t, "."), clone)
	script, err := os.ReadFile("scripts/release") // as it is, also before it is committed
	if err != nil {
		t.Fatal(err)
	}
	release := filepath.Join(t.TempDir(), "scripts", "release")
	if err := os.MkdirAll(filepath.Dir(release), 0o700); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(script), `cd "$(dirname "$0")/.."`, "cd "+clone, 1)
	if err := os.WriteFile(release, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}

	planned := in(clone, release, "--dry-run", version)
	if tags := in(clone, "git", "tag"); tags != "" {
		t.Errorf("a dry run made the tags %q", tags)
	}
	in(clone, release, version)
	tags := strings.Fields(in(clone, "git", "tag"))
	for _, tag := range tags {
		if !strings.Contains(planned, tag+"\n") {
			t.Errorf("the dry run did not say %s", tag)
		}
	}
	for _, want := range []string{version, "stores/redisstore/" + version, "mw/watermillmw/" + version, "cmd/quorum/" + version} {
		if !slices.Contains(tags, want) {
			t.Errorf("no tag %s among %v", want, tags)
		}
	}
	if i := slices.IndexFunc(tags, func(tag string) bool { return strings.HasPrefix(tag, "internal/") || strings.Contains(tag, "test/") }); i >= 0 {
		t.Errorf("%s is for this repository only", tags[i])
	}

	in(user, "go", "mod", "init", "example.com/user")
	in(user, "go", "get", ours+"/stores/redisstore@"+version)
	if text := in(user, "go", "list", "-m", ours); strings.TrimSpace(text) != ours+" "+version {
		t.Errorf("the store brings %q", text)
	}
}

func absolute(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestR64StoresAreSplitAtBlanksAndAtCommasBetweenThem(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                nil,
		" \t\n":                           nil,
		"redis://a":                       {"redis://a"},
		"redis://a redis://b":             {"redis://a", "redis://b"},
		"redis://a,rediss://b":            {"redis://a", "rediss://b"},
		"redis://a, file:/b ,\nredis://c": {"redis://a", "file:/b", "redis://c"},
		"redis://:p,w@a,redis://b":        {"redis://:p,w@a", "redis://b"},
	} {
		if got := splitStores(text); !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestFileStoresDoNotDependOnTheWorkingDirectory(t *testing.T) {
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	got, err := absolute([]string{"file:/a/b", "file:///a/b", "file:locks", "file:/a/../b/?name=x", "redis://h/0"})
	want := []string{"file:///a/b", "file:///a/b", "file://" + filepath.Join(dir, "locks"), "file:///b?name=x", "redis://h/0"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	for _, dsn := range []string{"file://host/dir", "file:"} {
		if got, err := absolute([]string{dsn}); err == nil {
			t.Errorf("%s gives %q", dsn, got)
		}
	}
}

func TestStoresFileAndFlagsComeBeforeTheEnvironment(t *testing.T) {
	t.Setenv(storesVariable, "file:/environment")
	file := filepath.Join(t.TempDir(), "stores")
	if err := os.WriteFile(file, []byte("# one\n  file:/one \n\n# two\nfile:/two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set  set
		want []string
	}{
		{set{}, []string{"file:///environment"}},
		{set{stores: []string{"file:/flag"}}, []string{"file:///flag"}},
		{set{file: file}, []string{"file:///one", "file:///two"}},
	} {
		stderr := &buffer{}
		if got, err := c.set.dsns(stderr); err != nil || !slices.Equal(got, c.want) || stderr.String() != "" {
			t.Errorf("%+v gives %q, %v, and says %q, want %q", c.set, got, err, stderr, c.want)
		}
	}
	if _, err := (&set{file: filepath.Join(t.TempDir(), "none")}).dsns(&buffer{}); codeOf(err) != codeUsage {
		t.Errorf("a stores file that is missing gives %v", err)
	}
}

// The home directory comes from the user database: HOME and XDG variables
// differ between cron, sudo and a shell.
func TestDefaultDirectoryDoesNotFollowTheEnvironment(t *testing.T) {
	want, err := defaultDirectory()
	if err != nil {
		t.Skipf("this user has no home: %v", err)
	}
	for _, home := range []string{t.TempDir(), ""} {
		t.Setenv("HOME", home)
		t.Setenv("XDG_STATE_HOME", home)
		if got, err := defaultDirectory(); got != want || err != nil {
			t.Errorf("with HOME=%q it is %q, %v, want %q", home, got, err, want)
		}
		if os.Getenv("HOME") != home {
			t.Error("HOME was changed")
		}
	}
}

func TestDefaultDirectoryOfAUserWithoutAHomeIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can be another user")
	}
	open := filepath.Join(t.TempDir(), "quorum")
	text, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(open, text, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(open); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(limited(t), open, "run", "key", "--", "true")
	cmd.Dir = "/"
	cmd.Env = []string{"HOME=" + t.TempDir(), "USER=somebody", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	out, _ := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != codeUsage || !strings.Contains(string(out), "--store") {
		t.Errorf("code %d, want %d and a way out:\n%s", cmd.ProcessState.ExitCode(), codeUsage, out)
	}
}

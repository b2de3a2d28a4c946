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

func TestStoresFileAndFlagsComeBeforeTheEnvironment(t *testing.T) {
	t.Setenv(storesVariable, "file:/environment,file:/other")
	file := filepath.Join(t.TempDir(), "stores")
	if err := os.WriteFile(file, []byte("# one\n  file:/one # the first\n\n# two\nfile:/two\t#\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		set  set
		want []string
	}{
		{set{}, []string{"file:///environment", "file:///other"}},
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

func TestStoresFileWithMoreThanOneDSNOnALineIsRefused(t *testing.T) {
	for _, line := range []string{"file:/one file:/two", "file:/one,file:/two", "file:/one two"} {
		file := filepath.Join(t.TempDir(), "stores")
		if err := os.WriteFile(file, []byte("# stores\n"+line+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := readStoresFile(file, &buffer{}); codeOf(err) != codeUsage || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q gives %q, %v, want a usage error that names line 2", line, got, err)
		}
	}
}

func TestStoresFileThatEverybodyMayReadIsWarnedOfOnlyForAPassword(t *testing.T) {
	for line, warned := range map[string]bool{"redis://h:1": false, "redis://user@h:1": false, "redis://user:pw@h:1": true} {
		file := filepath.Join(t.TempDir(), "stores")
		if err := os.WriteFile(file, []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
		stderr := &buffer{}
		if _, err := readStoresFile(file, stderr); err != nil || strings.Contains(stderr.String(), "chmod 600") != warned {
			t.Errorf("%s: %v, and says %q", line, err, stderr)
		}
	}
}

func TestSetButEmptyVariableDoesNotMeanTheDefaultDirectory(t *testing.T) {
	for _, text := range []string{"", " ", " , "} {
		t.Setenv(storesVariable, text)
		s := &set{}
		if got, err := s.dsns(&buffer{}); codeOf(err) != codeUsage || !strings.Contains(err.Error(), storesVariable) || s.local != "" {
			t.Errorf("%s=%q gives %q, %v, want a usage error that names it", storesVariable, text, got, err)
		}
	}
	if err := os.Unsetenv(storesVariable); err != nil { // t.Setenv restores it
		t.Fatal(err)
	}
	s := &set{}
	if got, err := s.dsns(&buffer{}); err == nil && (s.local == "" || !slices.Equal(got, []string{"file://" + s.local})) {
		t.Errorf("without it the stores are %q, said to be in %q", got, s.local)
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

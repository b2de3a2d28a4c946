//go:build unix

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestF151ExitStatusIsTheCommands(t *testing.T) {
	set := stores(t)
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	noFormat := filepath.Join(dir, "noformat")
	if err := os.WriteFile(noFormat, []byte("text"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		argv []string
		code int
	}{
		{"exit 0", []string{"sh", "-c", "exit 0"}, 0},
		{"exit 7", []string{"sh", "-c", "exit 7"}, 7},
		{"exit 75", []string{"sh", "-c", "exit 75"}, 75},
		{"exit 255", []string{"sh", "-c", "exit 255"}, 255},
		{"SIGKILL", []string{"sh", "-c", "kill -KILL $$"}, 137},
		{"SIGTERM", []string{"sh", "-c", "kill -TERM $$"}, 143},
		{"missing in PATH", []string{"quorum-no-such-command"}, 127},
		{"missing file", []string{filepath.Join(dir, "missing")}, 127},
		{"no x bit", []string{plain}, 126},
		{"directory", []string{dir}, 126},
		{"no program", []string{noFormat}, 126},
	} {
		t.Run(c.what, func(t *testing.T) {
			run(t, set, append([]string{"run", "key", "--"}, c.argv...)...).expect(c.code)
			free(t, set, "key")
		})
	}
}

func TestR69F152EachFailureHasItsOwnCode(t *testing.T) {
	set := stores(t)
	hold(t, set, "held")
	for _, c := range []struct {
		what string
		set  string
		args []string
		code int
	}{
		{"contention at once", set, []string{"run", "--try", "held", "--", "true"}, 75},
		{"contention at once, as --wait 0", set, []string{"run", "--wait", "0", "held", "--", "true"}, 75},
		{"contention after a wait", set, []string{"run", "--wait", "1s", "held", "--", "true"}, 75},
		{"outage", "redis://127.0.0.1:1", []string{"run", "--try", "key", "--", "true"}, 69},
		{"outage after a wait", "redis://127.0.0.1:1", []string{"run", "--wait", "200ms", "key", "--", "true"}, 69},
		{"outage at once by flag", "redis://127.0.0.1:1", []string{"run", "--fail-on-outage", "key", "--", "true"}, 69},
		{"another max TTL", set, []string{"run", "--max-ttl", "30s", "held", "--", "true"}, 78},
		{"unknown flag", set, []string{"run", "--nonsense", "key", "--", "true"}, 64},
		{"unknown command", set, []string{"nonsense"}, 64},
		{"no command", set, []string{"run", "key"}, 64},
		{"no key", set, []string{"run", "--", "true"}, 64},
		{"two keys", set, []string{"run", "a", "b", "--", "true"}, 64},
		{"empty key", set, []string{"run", "", "--", "true"}, 64},
		{"bad duration", set, []string{"run", "--wait", "soon", "key", "--", "true"}, 64},
		{"negative wait", set, []string{"run", "--wait=-1s", "key", "--", "true"}, 64},
		{"both --try and --wait", set, []string{"run", "--try", "--wait", "1s", "key", "--", "true"}, 64},
		{"both --store and --stores-file", set, []string{"run", "--store", "file:/x", "--stores-file", "y", "key", "--", "true"}, 64},
		{"grace that does not fit", set, []string{"run", "--ttl", "3s", "--grace", "600ms", "key", "--", "true"}, 64},
		{"margin above half the TTL", set, []string{"run", "--ttl", "3s", "--margin", "2s", "key", "--", "true"}, 64},
		{"unknown order", set, []string{"run", "--order", "random", "key", "--", "true"}, 64},
		{"TTL above the longest", set, []string{"run", "--ttl", "2m", "key", "--", "true"}, 64},
		{"unknown scheme", "nonsense://a", []string{"run", "key", "--", "true"}, 64},
	} {
		t.Run(c.what, func(t *testing.T) {
			r := run(t, c.set, c.args...).expect(c.code)
			lines := strings.Split(strings.TrimSpace(r.stderr.String()), "\n")
			if len(lines) != 1 || !strings.HasPrefix(lines[0], "quorum: ") {
				t.Errorf("want one line that begins with quorum:, got %q", lines)
			}
		})
	}
}

// What a user of flock or of another tool writes first is answered.
func TestUsageErrorsSayWhatIsMeant(t *testing.T) {
	for want, args := range map[string][]string{
		"quorum: unknown flag: --no-wait; here it is --try\n":                          {"--no-wait"},
		"quorum: unknown flag: --timeout; here it is --wait\n":                         {"--timeout=5s"},
		"quorum: unknown flag: --nonsense; see quorum run --help\n":                    {"--nonsense"},
		"quorum: --ttl 0s: it must lie above zero, and is at most --max-ttl 1m0s\n":    {"--ttl", "0s"},
		"quorum: --order: \"x\" is none of in-order, first-then-rest or all-at-once\n": {"--order", "x"},
	} {
		args = append(append([]string{"run"}, args...), "key", "--", "true")
		if got := run(t, "", args...).expect(codeUsage).stderr.String(); got != want {
			t.Errorf("%v: %q, want %q", args, got, want)
		}
	}
}

func TestF152CodesDifferAndAreNotTheShells(t *testing.T) {
	codes := []int{codeUsage, codeOutage, codeFailed, codeContention, codeLost, codeMismatch}
	for i, c := range codes {
		if c >= 126 && c <= 165 || c == 0 || slices.Index(codes, c) != i {
			t.Errorf("code %d is the shell's, or used twice, in %v", c, codes)
		}
		if !strings.Contains(exitHelp, "\n  "+strconv.Itoa(c)+" ") {
			t.Errorf("code %d is not documented by --help", c)
		}
	}
}

func TestF113ConflictExitCodeIsCheckedBeforeTheCommandStarts(t *testing.T) {
	set := stores(t)
	hold(t, set, "held")
	for value, code := range map[string]int{
		"600": 64, "-1": 64, "256": 64, "abc": 64, "0": 0, "255": 255,
	} {
		mark := filepath.Join(t.TempDir(), "started")
		run(t, set, "run", "--try", "-E", value, "held", "--", "touch", mark).expect(code)
		run(t, set, "run", "--try", "--conflict-exit-code", value, "held", "--", "touch", mark).expect(code)
		if _, err := os.Stat(mark); err == nil {
			t.Errorf("-E %s: the command was started", value)
		}
	}
}

func TestF032WaitLimitStartsNothingAndIsKept(t *testing.T) {
	set := stores(t)
	hold(t, set, "held", "--label", "the night job")
	mark := filepath.Join(t.TempDir(), "started")
	r := run(t, set, "run", "--wait", "2200ms", "held", "--", "touch", mark).expect(75)
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command was started although the lock was not taken")
	}
	if r.took < 2200*time.Millisecond {
		t.Errorf("gave up after %v, before the wait was over", r.took)
	}
	if text := r.stderr.String(); !strings.Contains(text, `waiting for "held"`) || !regexp.MustCompile(`the night job \(.* since .*\) for `).MatchString(text) {
		t.Errorf("after 2 s it is not said who holds the lock and for how long:\n%s", text)
	}
}

func TestF154NothingAfterTheDashesIsTaken(t *testing.T) {
	argv := []string{"-v", "--help", "--", "a b", "", "*", "--wait", "1s", "-E"}
	r := run(t, stores(t), append([]string{"run", "key", "--", "printf", `<%s>`}, argv...)...).expect(0)
	if want := "<" + strings.Join(argv, "><") + ">"; r.stdout.String() != want {
		t.Errorf("the command got %s, want %s", r.stdout, want)
	}
	r = run(t, stores(t), "run", "key", "--wait", "1s", "--", "printf", "%s", "flags after the key").expect(0)
	if r.stdout.String() != "flags after the key" {
		t.Errorf("the command printed %q", r.stdout)
	}
}

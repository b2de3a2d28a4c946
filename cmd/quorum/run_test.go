//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

func TestR70CommandFindsItsLockAndNoSecret(t *testing.T) {
	set := stores(t)
	t.Setenv("QUORUM_TOKEN", "1") // as within another quorum run
	t.Setenv("QUORUM_UNREAD", "x")
	before := time.Now()
	r := run(t, set, "run", "--ttl", "10s", "key", "--", "env").expect(0)
	got := map[string]string{}
	for line := range strings.Lines(r.stdout.String()) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), "="); strings.HasPrefix(name, "QUORUM_") {
			if _, twice := got[name]; twice {
				t.Errorf("%s is set twice", name)
			}
			got[name] = value
		}
	}
	if len(got) != 3 || got["QUORUM_KEY"] != "key" {
		t.Errorf("the command found %v, want key, token and validity alone", got)
	}
	if token, err := strconv.ParseInt(got["QUORUM_TOKEN"], 10, 64); err != nil || token <= 1 {
		t.Errorf("QUORUM_TOKEN=%s", got["QUORUM_TOKEN"])
	}
	until, err := strconv.ParseInt(got["QUORUM_VALID_UNTIL"], 10, 64)
	if end := time.UnixMilli(until); err != nil || end.Before(before.Add(5*time.Second)) || end.After(time.Now().Add(10*time.Second)) {
		t.Errorf("QUORUM_VALID_UNTIL=%s, want at most 10 s from %v", got["QUORUM_VALID_UNTIL"], before)
	}
	if !strings.Contains(r.stderr.String(), "QUORUM_UNREAD") {
		t.Errorf("a variable that looks like a setting and is not read is not named:\n%s", r.stderr)
	}
}

func TestF172NoPasswordInArgumentsOrTheCommandsEnvironment(t *testing.T) {
	const secret = "s3cr3tword"
	r := run(t, stores(t), "run", "--try", "--store", "redis://:"+secret+"@127.0.0.1:1", "key", "--", "true").expect(64)
	if text := r.stderr.String(); strings.Contains(text, secret) || !strings.Contains(text, "QUORUM_STORES") || !strings.Contains(text, "--stores-file") {
		t.Errorf("the refusal shows the password, or not the other ways:\n%s", text)
	}
	r = run(t, "redis://:"+secret+"@127.0.0.1:1", "run", "--try", "key", "--", "true").expect(69)
	if strings.Contains(r.stderr.String(), secret) {
		t.Errorf("the password is shown:\n%s", r.stderr)
	}
	file := filepath.Join(t.TempDir(), "stores")
	text := "# the stores\n\nredis://:" + secret + "@127.0.0.1:1\n"
	for mode, warned := range map[os.FileMode]bool{0o604: true, 0o600: false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
		r = run(t, "", "run", "--try", "--stores-file", file, "key", "--", "true").expect(69)
		if got := strings.Contains(r.stderr.String(), "chmod 600"); got != warned || strings.Contains(r.stderr.String(), secret) {
			t.Errorf("mode %o: warned %v, want %v, and no password:\n%s", mode, got, warned, r.stderr)
		}
	}
}

func TestR66StandardStreamsAreTheCommands(t *testing.T) {
	cmd := exec.CommandContext(limited(t), binary, "run", "key", "--", "sh", "-c", "cat; echo aside >&2; exit 3")
	cmd.Env = append(os.Environ(), storesVariable+"="+stores(t))
	cmd.Stdin = strings.NewReader("what was piped in")
	stderr := &buffer{}
	cmd.Stderr = stderr
	out, _ := cmd.Output()
	if string(out) != "what was piped in" || stderr.String() != "aside\n" || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("stdout %q, stderr %q, code %d", out, stderr, cmd.ProcessState.ExitCode())
	}
}

func TestR66LockIsHeldExactlyWhileTheCommandRuns(t *testing.T) {
	set := stores(t)
	r := hold(t, set, "key")
	run(t, set, "run", "--try", "key", "--", "true").expect(75)
	r.signal(syscall.SIGTERM)
	r.expect(143)
	run(t, set, "run", "--try", "key", "--", "true").expect(0)
}

func TestR68SignalsReachTheCommand(t *testing.T) {
	for _, sig := range []syscall.Signal{
		syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGINT,
	} {
		t.Run(sig.String(), func(t *testing.T) {
			script := fmt.Sprintf(`trap 'echo caught; exit 9' %d; echo started; while :; do sleep 0.01; done`, int(sig))
			r := begin(t, stores(t), "run", "key", "--", "sh", "-c", script)
			eventually(t, 10*time.Second, "the command runs", func() bool { return strings.Contains(r.stdout.String(), "started") })
			r.signal(sig)
			if r.expect(9); !strings.Contains(r.stdout.String(), "caught") {
				t.Errorf("the command did not see %v: %s", sig, r.stdout)
			}
		})
	}
}

func TestF046KilledQuorumTakesItsCommandAlong(t *testing.T) {
	set := stores(t)
	file := filepath.Join(t.TempDir(), "pids")
	r := begin(t, set, "run", "--ttl", "3s", "key", "--", "sh", "-c", "echo $$ >"+file+"; exec sleep 1000")
	pid := pids(t, file, 1)[0]
	r.signal(syscall.SIGKILL)
	eventually(t, 10*time.Second, "the command is gone", func() bool { return !alive(pid) })
	eventually(t, 20*time.Second, "the key is free", func() bool {
		return run(t, set, "run", "--try", "--ttl", "3s", "key", "--", "true").code == 0
	})
}

func TestF085DaemonDoesNotKeepTheLock(t *testing.T) {
	set := stores(t)
	file := filepath.Join(t.TempDir(), "pids")
	run(t, set, "run", "key", "--", "sh", "-c", "sleep 60 & echo $! >"+file+"; exit 0").expect(0)
	daemon := pids(t, file, 1)[0]
	run(t, set, "run", "--wait", "5s", "key", "--", "true").expect(0)
	if !alive(daemon) {
		t.Error("what the command left behind on purpose was ended")
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", daemon))
	if err != nil {
		t.Skipf("descriptors cannot be listed here: %v", err)
	}
	for _, fd := range fds {
		if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", daemon, fd.Name())); strings.Contains(to, "/locks") {
			t.Errorf("the daemon inherited %s", to)
		}
	}
}

func TestF097CleanStopGivesTheLockBack(t *testing.T) {
	set := stores(t)
	first := hold(t, set, "key", "--ttl", "60s")
	second := begin(t, set, "run", "--ttl", "60s", "key", "--", "true")
	select {
	case <-second.ended:
		t.Fatalf("the second did not wait\n%s", second.stderr)
	case <-time.After(300 * time.Millisecond):
	}
	first.signal(syscall.SIGTERM)
	first.expect(143)
	ended := time.Now()
	second.expect(0)
	if gap := time.Since(ended); gap > 20*time.Second { // of a TTL of a minute
		t.Errorf("the second started and ended %v after the first", gap)
	}
}

// A store that hangs costs a command whose lock is free elsewhere a moment, and
// not the five seconds for which the library tries.
func TestGiveBackTriesForLongOnlyWhereTooFewKnow(t *testing.T) {
	limit, err := giveBack(t.Context(), freed{nil})
	if limit <= 0 || limit > moment || moment >= closeLimit || err != nil {
		t.Errorf("of a lock that is free: %v, %v; closing may take %v", limit, err, closeLimit)
	}
	if limit, err = giveBack(t.Context(), freed{quorum.ErrNoQuorum}); limit != closeLimit || !errors.Is(err, quorum.ErrNoQuorum) {
		t.Errorf("of a lock that too few know of: %v, %v", limit, err)
	}
}

// freed is a lease whose release ends so.
type freed struct{ err error }

func (f freed) Release(context.Context) error { return f.err }

// One that hangs is told in one line.
func TestRunDoesNotWaitForOneStoreThatHangs(t *testing.T) {
	nodes, set := newRedisSet(t, 3)
	r := hold(t, set, "key")
	nodes[1].Stall()
	r.signal(syscall.SIGTERM)
	r.expect(143)
	if want := `quorum: "key" could not be released on store b, which frees it at the end of its TTL: `; strings.Count(r.stderr.String(), want) != 1 {
		t.Errorf("want one line, %s ..., got\n%s", want, r.stderr)
	}
	run(t, set, "run", "--try", "key", "--", "true").expect(0)
}

func TestF098SignalEndsTheWait(t *testing.T) {
	_, redis := newRedisSet(t, 3)
	for what, set := range map[string]string{"file": stores(t), "redis": redis} {
		hold(t, set, "held")
		for sig, code := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
			t.Run(what+" "+sig.String(), func(t *testing.T) {
				mark := filepath.Join(t.TempDir(), "started")
				r := begin(t, set, "run", "held", "--", "touch", mark)
				eventually(t, 10*time.Second, "it says that it waits", func() bool {
					return strings.Contains(r.stderr.String(), "waiting for")
				})
				sent := time.Now()
				r.signal(sig)
				r.expect(code)
				if took := time.Since(sent); took > 10*time.Second {
					t.Errorf("it took %v to end", took)
				}
				if _, err := os.Stat(mark); err == nil {
					t.Error("the command was started")
				}
				out := run(t, set, "status", "--json", "held").expect(75).stdout.String()
				if holders := regexp.MustCompile(`"owner":`).FindAllString(out, -1); len(holders) > 3 {
					t.Errorf("something of the waiter is left:\n%s", out)
				}
			})
		}
	}
}

func TestF155OrphansAreReapedAndTheStatusIsKept(t *testing.T) {
	script := `i=0; while [ $i -lt 100 ]; do (sleep 0.01 &); i=$((i+1)); done
		sleep 1.2; grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | while read -r f; do
			[ "$(sed -n 's/^PPid:.//p' "$f")" = "$PPID" ] && echo zombie; done; exit 7`
	run := func(t *testing.T, name string, args ...string) {
		cmd := exec.CommandContext(limited(t), name, append(args, "run", "key", "--", "sh", "-c", script)...)
		cmd.Env = append(os.Environ(), storesVariable+"="+stores(t))
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 7 {
			t.Errorf("code %d, want 7\n%s", code, out)
		}
		if n := strings.Count(string(out), "zombie"); n > 0 {
			t.Errorf("%d zombies were left", n)
		}
	}
	t.Run("as subreaper", func(t *testing.T) { run(t, binary) })
	t.Run("as process 1", func(t *testing.T) {
		if err := exec.Command("unshare", "--pid", "--fork", "--mount-proc", "true").Run(); err != nil {
			t.Skipf("no process namespaces here: %v", err)
		}
		run(t, "unshare", "--pid", "--fork", "--mount-proc", binary)
	})
}

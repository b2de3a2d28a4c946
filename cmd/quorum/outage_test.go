//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
)

func TestOutageNamesTheCauseOfEachStoreThatFailed(t *testing.T) {
	set := "redis://127.0.0.1:1 redis://127.0.0.1:2 redis://127.0.0.1:3"
	r := run(t, set, "run", "--wait", "2500ms", "key", "--", "true").expect(codeOutage)
	lines := strings.Split(strings.TrimSpace(r.stderr.String()), "\n")
	if len(lines) < 2 || !strings.Contains(lines[0], `waiting for "key"`) {
		t.Fatalf("want a notice and an error, got\n%s", r.stderr)
	}
	for _, line := range []string{lines[0], lines[len(lines)-1]} {
		// After two refusals of three nobody needs the third.
		if n := strings.Count(line, ": connect: connection refused"); n < 2 {
			t.Errorf("%q says of %d stores why they do not answer, want at least 2", line, n)
		}
	}
	if strings.Contains(r.stderr.String(), "connection pool") {
		t.Errorf("the client writes to standard error:\n%s", r.stderr)
	}
}

func TestLastRealErrorOfAStoreIsKept(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	var f failures
	f.note("a", fmt.Errorf("load: %w", refused))
	f.note("a", fmt.Errorf("read: %w", context.DeadlineExceeded))
	got := f.text([]quorum.Vote{
		{Store: "a", Outcome: quorum.OutcomeUnknown, Err: context.DeadlineExceeded},
		{Store: "b", Outcome: quorum.OutcomeNotAsked},
		{Store: "c", Outcome: quorum.OutcomeGranted},
	})
	if want := "a: dial tcp: connection refused; b: not asked"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = f.text([]quorum.Vote{{Store: "d", Err: errors.New("no answer in time")}, {Store: "a", Err: errors.New("no answer yet")}, {Store: "e", Err: refused}})
	if want := "d: no answer in time; a, e: dial tcp: connection refused"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	got = f.text([]quorum.Vote{{Store: "a", Outcome: quorum.OutcomeNotAsked}, {Store: "b", Err: errors.New("x"), Outcome: quorum.OutcomeUnknown}})
	if want := "a: dial tcp: connection refused; b: x"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatusOfAnotherSetIsAMismatchAndNoOutage(t *testing.T) {
	_, set := newRedisSet(t, 3)
	run(t, set, "run", "key", "--", "true").expect(0)
	other := strings.Fields(set)[0]
	r := run(t, other, "status", "key").expect(codeMismatch)
	if out := r.stdout.String(); !strings.Contains(out, "serves another set") || strings.Contains(out, "no answer") {
		t.Errorf("status says\n%s", out)
	}
}

func TestInitSaysWhichStoresItDeclaredNew(t *testing.T) {
	nodes, set := newRedisSet(t, 3)
	for _, n := range nodes {
		n.RestartEmpty()
	}
	nodes[2].Stop()
	r := run(t, set, "init", "--yes").expect(codeOutage)
	if !strings.Contains(r.stderr.String(), "vote from now on: a, b;") || !strings.Contains(r.stderr.String(), "c: dial tcp") {
		t.Errorf("init says\n%s", r.stderr)
	}
	run(t, set, "run", "--try", "key", "--", "true").expect(0)
}

func TestSetInQuarantineIsToldOfInit(t *testing.T) {
	nodes, set := newRedisSet(t, 1)
	nodes[0].RestartEmpty()
	for range 3 {
		r := run(t, set, "run", "--try", "key", "--", "true").expect(codeOutage)
		if !strings.Contains(r.stderr.String(), "quorum init ends the wait") {
			t.Errorf("got\n%s", r.stderr)
		}
	}
}

func TestDemoOnAnotherSetEndsAtOnce(t *testing.T) {
	t.Parallel()
	_, set := newRedisSet(t, 3)
	r := run(t, "", "demo", "--duration", "30s", "--store", strings.Fields(set)[0]).expect(codeMismatch)
	if n := strings.Count(r.stdout.String()+r.stderr.String(), "\n"); n > 3 {
		t.Errorf("%d lines:\n%s%s", n, r.stdout, r.stderr)
	}
}

// Only the command's own start has the codes of a shell for it.
func TestUnusableStoreDirectoryIsNoCommandThatIsMissing(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	for store, code := range map[string]int{
		"file:" + file:                     codeFailed,
		"file:" + open:                     codeFailed,
		"file:" + filepath.Join(file, "x"): codeFailed,
		"file:/proc/nothing":               codeFailed,
		"file:" + dir + "/no/x":            codeUsage,
	} {
		r := run(t, store, "run", "--try", "key", "--", "true").expect(code)
		if strings.Contains(r.stderr.String(), "chmod o-w") {
			t.Errorf("%s: %s", store, r.stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	r := run(t, "", "--version").expect(0)
	if !strings.HasPrefix(r.stdout.String(), "quorum version ") || !strings.Contains(r.stdout.String(), " go1.") {
		t.Errorf("got %q", r.stdout)
	}
}

// A job that waits may wait in another place than its user thinks.
func TestWaitInTheDefaultDirectoryIsTold(t *testing.T) {
	for _, local := range []string{"", "/var/lib/quorum/locks"} {
		stderr := &buffer{}
		n := newNotices(stderr, local)
		ctx, cancel := context.WithCancel(t.Context())
		n.tell(ctx, nil)
		for range 2 {
			n.observe(quorum.Event{Kind: quorum.EventWaiting, Key: "key", Err: quorum.ErrNoQuorum})
		}
		eventually(t, 10*time.Second, "the wait is told", func() bool { return strings.Contains(stderr.String(), `waiting for "key"`) })
		cancel()
		n.done.Wait()
		if n := strings.Count(stderr.String(), "about /var/lib/quorum/locks on this machine"); n > 1 || (n == 1) != (local != "") {
			t.Errorf("in directory %q it says\n%s", local, stderr)
		}
	}
}

// A line of a log is cut; what the command says is not.
func TestWholeErrorIsTold(t *testing.T) {
	_, set := newRedisSet(t, 5)
	run(t, set, "run", "key", "--", "true").expect(0)
	longer := set + " redis://127.0.0.1:1"
	r := run(t, longer, "run", "--wait", "0", "key", "--", "true").expect(codeMismatch)
	if text := r.stderr.String(); strings.Contains(text, "..") || !strings.Contains(text, "serves the set") && !strings.Contains(text, "was asked for the set") {
		t.Errorf("the error is cut:\n%s", text)
	}
}

func TestSilentServerOverTLSIsDoubted(t *testing.T) {
	node := testserver.Redis(t) // which speaks no TLS
	r := run(t, "rediss://"+node.Addr, "run", "--wait", "0", "key", "--", "true").expect(codeOutage)
	if text := r.stderr.String(); !strings.Contains(text, "does it speak TLS?") && !strings.Contains(text, "tls: ") {
		t.Errorf("nothing says what is wrong:\n%s", text)
	}
}

func TestStatusOfANewSetNamesInit(t *testing.T) {
	nodes, set := newRedisSet(t, 3)
	for _, n := range nodes {
		n.RestartEmpty()
	}
	r := run(t, set, "status", "key").expect(codeOutage)
	if !strings.Contains(r.stderr.String(), "quorum init") {
		t.Errorf("status of a set that nobody declared new says\n%s%s", r.stdout, r.stderr)
	}
}

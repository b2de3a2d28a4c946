package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quorumlock/quorum/internal/testserver"
)

// An operator says that members have forgotten: of three the lock goes on
// without one, and without two it waits for them.
func TestInitForgotten(t *testing.T) {
	_, set := newRedisSet(t, 3)
	if r := run(t, set, "init", "--forgotten", "nobody"); r.code == 0 || !strings.Contains(r.stderr.String(), `"nobody"`) {
		t.Errorf("an unknown member: code %d\n%s", r.code, r.stderr)
	}
	if r := run(t, set, "init", "--forgotten", "a"); r.code != 0 || !strings.Contains(r.stdout.String(), "in quarantine for 1m0s: a") {
		t.Fatalf("code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := run(t, set, "run", "--wait", "0", "k", "--", "true"); r.code != 0 {
		t.Errorf("with one of three out: code %d\n%s", r.code, r.stderr)
	}
	if r := run(t, set, "init", "--forgotten", "a,b"); r.code != 0 {
		t.Fatalf("code %d\n%s", r.code, r.stderr)
	}
	if r := run(t, set, "run", "--wait", "0", "k", "--", "true"); r.code != codeOutage {
		t.Errorf("with two of three out: code %d, want %d\n%s", r.code, codeOutage, r.stderr)
	}
}

// Three names of one server are one vote: init says so, instead of a run that
// waits for ever.
func TestR42InitRefusesOneServerUnderSeveralNames(t *testing.T) {
	n := testserver.Redis(t)
	var dsns []string
	for i := range 3 {
		dsns = append(dsns, fmt.Sprintf("redis://%s/%d?name=%c", n.Addr, i, 'a'+i))
	}
	r := run(t, strings.Join(dsns, " "), "init", "--yes")
	if r.code != codeUsage || !strings.Contains(r.stderr.String(), "is the same server as") {
		t.Errorf("code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// Two that restarted empty are as new as it gets, but the third remembers.
func TestInitOfASetThatIsNotNewNeedsAnotherWord(t *testing.T) {
	nodes, set := newRedisSet(t, 3)
	run(t, set, "init", "--yes").expect(0) // again, at once
	hold(t, set, "key")
	nodes[0].RestartEmpty()
	nodes[1].RestartEmpty()
	r := run(t, set, "init", "--yes").expect(codeUsage)
	if text := r.stderr.String(); !strings.Contains(text, "forgotten: c;") || !strings.Contains(text, "--again") {
		t.Errorf("init says\n%s", text)
	}
	run(t, set, "run", "--try", "other", "--", "true").expect(codeOutage) // nothing was changed
	run(t, set, "init", "--yes", "--again").expect(0)
	run(t, set, "run", "--try", "other", "--", "true").expect(0)
	run(t, set, "init", "--yes").expect(0)
}

//go:build unix

package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// directories are file stores of one name each.
func directories(t *testing.T, names ...string) []string {
	t.Helper()
	dir := t.TempDir()
	var dsns []string
	for _, n := range names {
		dsns = append(dsns, fmt.Sprintf("file:%s?name=%s", filepath.Join(dir, n), n))
	}
	return dsns
}

// naming gives stores as repeated flags.
func naming(flag string, dsns ...string) (args []string) {
	for _, d := range dsns {
		args = append(args, flag, d)
	}
	return args
}

func TestR48ChangeCommand(t *testing.T) {
	all := directories(t, "a", "b", "c", "d")
	old, next := strings.Join(all[:3], " "), strings.Join(all[1:], " ")
	toNext := append([]string{"--max-ttl", "2s"}, naming("--new-store", all[1:]...)...)
	job := func(flags ...string) []string {
		return append(append([]string{"run", "--try", "--max-ttl", "2s", "--ttl", "2s"}, flags...), "key", "--", "true")
	}
	move := func(stage string) string {
		return run(t, old, append(append([]string{"change"}, toNext...), stage)...).expect(0).stdout.String()
	}
	between := naming("--new-store", all[1:]...)

	run(t, old, job()...).expect(0)
	out := move("joining")
	for _, line := range []string{"stage: joining", "a      old   joining", "b      both  joining", "d      new   joined"} {
		if !strings.Contains(out, line) {
			t.Errorf("it does not print %q:\n%s", line, out)
		}
	}
	run(t, old, job()...).expect(0)
	run(t, old, job(between...)...).expect(0)
	run(t, next, job()...).expect(codeMismatch)
	run(t, old, append(append([]string{"status"}, toNext...), "key")...).expect(0)

	r := run(t, old, append(append([]string{"change"}, toNext...), "opened")...).expect(0)
	if text := r.stderr.String(); !strings.Contains(text, "waiting 2s until no lease of the old set lasts") {
		t.Errorf("it does not tell of the wait: %s", text)
	}
	run(t, old, job()...).expect(codeMismatch)
	run(t, old, job(between...)...).expect(0)
	run(t, next, job()...).expect(0)

	move("done")
	run(t, old, job(between...)...).expect(codeMismatch)
	run(t, next, job()...).expect(0)
	move("done") // again does nothing
}

func TestR48ChangeCommandRefuses(t *testing.T) {
	all := directories(t, "a", "b")
	run(t, all[0], "change", "joining").expect(codeUsage)
	run(t, all[0], "change", "--new-store", all[1]).expect(codeUsage)
	run(t, all[0], "change", "--new-store", all[1], "joined").expect(codeUsage)
	run(t, all[0], "change", "--new-store", all[0], "done").expect(codeUsage) // one set
	run(t, all[1], "run", "--max-ttl", "3m", "key", "--", "true").expect(0)   // of a third set
	if r := run(t, all[0], "change", "--new-store", all[1], "done").expect(codeMismatch); !strings.Contains(r.stderr.String(), `"b"`) {
		t.Errorf("it does not name the store: %s", r.stderr)
	}
	away := "redis://127.0.0.1:1?name=z"
	if r := run(t, away, "change", "--new-max-ttl", "2m", "--wait", "2s", "done").expect(codeOutage); !strings.Contains(r.stderr.String(), "z") {
		t.Errorf("it does not name the store: %s", r.stderr)
	}
}

//go:build unix

package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestDemoShowsNoOverlapAndGrowingTokensWhileNodesFail(t *testing.T) {
	t.Parallel()
	r := run(t, "redis://127.0.0.1:1", "demo", "--duration", "4s", "--seed", "3").expect(0)
	out := r.stdout.String()
	for _, part := range []string{
		`worker \d holds, token \d+, votes [a-e] [a-e] [a-e]`, `node [a-e] killed`, `node [a-e] restarted`,
		`(?m)^overlaps: 0$`, `(?m)^tokens strictly increasing: yes \(\d+ tokens\)$`, `(?m)^[1-9]\d* acquisitions`,
	} {
		if !regexp.MustCompile(part).MatchString(out) {
			t.Errorf("the demo does not show %s:\n%s", part, out)
		}
	}
	if strings.Contains(out, "\x1b") || r.stderr.String() != "" {
		t.Errorf("not at a terminal it writes plain lines alone:\n%q\n%s", out, r.stderr)
	}
}

func TestDemoOnServersOfOnesOwnKillsNone(t *testing.T) {
	t.Parallel()
	_, set := newRedisSet(t, 3)
	args := []string{"demo", "--duration", "1s"}
	for _, dsn := range strings.Fields(set) {
		args = append(args, "--store", dsn)
	}
	r := run(t, "", args...).expect(0)
	if !strings.Contains(r.stdout.String(), "none was killed") {
		t.Errorf("got:\n%s", r.stdout)
	}
}

func TestDemoOnDeadServersFails(t *testing.T) {
	t.Parallel()
	run(t, "", "demo", "--duration", "300ms", "--store", "redis://127.0.0.1:1").expect(codeFailed)
}

func TestGuardSeesOverlapsAndDisorder(t *testing.T) {
	g := &guard{}
	g.enter(1, 10)
	g.leave(1)
	g.enter(2, 11)
	if r := g.report(); r != (guardReport{held: 2}) {
		t.Errorf("orderly entries give %+v", r)
	}
	g.enter(3, 12) // 2 is still in
	g.leave(2)     // and leaves too late: 3 stays in
	g.enter(4, 12) // 3 is still in, and the token is not above its own
	g.leave(4)
	g.enter(5, 3)
	if r := g.report(); r != (guardReport{held: 5, overlaps: 2, disorder: 2}) {
		t.Errorf("got %+v", r)
	}
}

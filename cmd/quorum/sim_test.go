package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// call runs the command in this process.
func call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = execute(args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestSimSummary(t *testing.T) {
	t.Parallel()
	code, out, errs := call(t, "sim", "--seeds", "40", "--seed", "100", "--jobs", "2")
	if code != 0 || errs != "" {
		t.Fatalf("code %d\n%s", code, errs)
	}
	for _, line := range []string{
		`runs +40, seeds 100 to 139; \d{4,} events`, `faults +.*\d+ partition, .*\d+ clock step`,
		`acquisitions +\d{3,} asked for, \d{3,} got in`, `contention +\d+ of \d+ attempts`, `lost +\d+ expired`,
		`time to acquire +p50 \S*s, p90 \S*s, p99 \S*s, most \S*s`, `time held +p50`, `writes +\d+; `, `quarantine +\d+ stores`,
	} {
		if !regexp.MustCompile("(?m)^" + line).MatchString(out) {
			t.Errorf("no line %q in\n%s", line, out)
		}
	}
}

// What comes of seeds does not depend on how many run at once.
func TestSimJobsChangeNothing(t *testing.T) {
	t.Parallel()
	args := []string{"sim", "--seeds", "24", "--seed", "7", "--stores", "3", "--order", "all-at-once", "--jobs"}
	_, one, _ := call(t, append(args, "1")...)
	_, four, _ := call(t, append(args, "4")...)
	if one != four || one == "" {
		t.Errorf("with one job:\n%s\nwith four:\n%s", one, four)
	}
}

func TestR80SimTraceRepeats(t *testing.T) {
	t.Parallel()
	code, first, _ := call(t, "sim", "--seed", "11", "--trace")
	_, second, _ := call(t, "sim", "--seed", "11", "--trace")
	_, other, _ := call(t, "sim", "--seed", "12", "--trace")
	switch {
	case code != 0 || strings.Count(first, "\n") < 100:
		t.Fatalf("code %d, and only\n%s", code, first)
	case first != second:
		t.Error("one seed gave two traces")
	case first == other:
		t.Error("two seeds gave one trace")
	}
}

func TestSimFlagsFixTheWorld(t *testing.T) {
	t.Parallel()
	s := simShape{stores: 4, strategy: "unanimous", ttl: 3e9, order: "first-then-rest", drift: "2%", clients: 3, duration: 9e9}
	if err := s.check(func(string) bool { return true }); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		c := s.config(seed, false)
		if c.Stores != 4 || c.Rule.Need() != 4 || c.TTL != 3e9 || c.Order != core.FirstThenRest || c.Work.AnyWay != 0 ||
			c.DriftPPM != 20_000 || c.Clients != 3 || c.Duration != 9e9 {
			t.Fatalf("seed %d: %+v", seed, c)
		}
	}
	want := "quorum sim --seed 5 --trace --stores 4 --strategy unanimous --ttl 3s --order first-then-rest --drift 2% --clients 3 --duration 9s"
	if got := s.replay(5); got != want {
		t.Errorf("replay is\n%s, want\n%s", got, want)
	}
}

func TestSimUsage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, says string }{
		{"--stores 17", "--stores 17: a set has 1 to 16"},
		{"--stores 0", "--stores 0: at least 1"},
		{"--clients -1", "--clients -1: at least 1"},
		{"--ttl 0", "--ttl 0s: above zero"},
		{"--ttl 50ms", "100 ms <= TTL"},
		{"--strategy most", `"most" is neither majority nor unanimous`},
		{"--order random", `"random" is none of in-order`},
		{"--drift 0%", `"0%" is no percentage`},
		{"--drift lots%", `"lots%" is no percentage`},
		{"--drift 1", `"1" has no unit: write 1%`},
		{"--seeds 0", "--seeds and --jobs must be above zero"},
		{"--trace", "name it with --seed"},
		{"--trace --seed 1 --seeds 2", "leave --seeds out"},
		{"again", "sim takes flags"},
	} {
		if code, out, errs := call(t, append([]string{"sim"}, strings.Fields(tc.args)...)...); code != codeUsage || !strings.Contains(errs, tc.says) {
			t.Errorf("sim %s: code %d, %q %q; want %q", tc.args, code, out, errs, tc.says)
		}
	}
}

// A violation names the seed, the command that repeats it, and little that is
// wrong with the world.
func TestSimTellsViolations(t *testing.T) {
	t.Parallel()
	s := simShape{strategy: "majority", drift: "1%"}
	if err := s.check(func(string) bool { return false }); err != nil {
		t.Fatal(err)
	}
	s.base.Bugs = core.BugOneOwner
	r := &seedRunner{run: func(seed uint64) *sim.Report { return seedOf(&s, seed, false) }, progress: newProgress(nil, 60)}
	total := r.all(1, 60, 2, make(chan os.Signal))
	if len(r.failed) == 0 || total.Runs != 60 {
		t.Fatalf("%d runs, %d failed: the mistake was not seen", total.Runs, len(r.failed))
	}
	var out bytes.Buffer
	writeViolations(&out, r.failed, &s)
	first := r.failed[0]
	for _, part := range []string{
		`\d+ of the seeds FAILED`, `seed ` + itoa(first.Seed) + `, at \S+s, [a-z ]+: `,
		`replay: quorum sim --seed ` + itoa(first.Seed) + ` --trace\n`, `smallest list of faults that still fails:\n  network: `,
	} {
		if !regexp.MustCompile(part).MatchString(out.String()) {
			t.Errorf("%q is missing in\n%s", part, out.String())
		}
	}
	if again := seedOf(&s, first.Seed, true); again.Violations[0].String() != first.Violations[0].String() {
		t.Errorf("replayed, seed %d says %v; before %v", first.Seed, again.Violations[0], first.Violations[0])
	}
}

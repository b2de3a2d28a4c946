package quorumsim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/sim"
)

// asking is a job that goes on when it does not get the lock.
func asking(ask Ask) func(*Job) {
	return func(j *Job) {
		for {
			if lease, err := j.Acquire("k", ask); err == nil {
				_ = lease.Release()
			}
		}
	}
}

func extending(ttl time.Duration) func(*Job) {
	return func(j *Job) {
		if lease, err := j.Acquire("k", Ask{}); err == nil {
			_ = lease.Extend(ttl)
		}
	}
}

func TestConfigIsRefused(t *testing.T) {
	job := func(*Job) {}
	never := func(uint32, int) bool { return false }
	any2 := func(v uint32, _ int) bool { return v&3 != 0 }
	odd := func(v uint32, _ int) bool { return v == 1 }
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "a Job or a Script"},
		{Config{Job: job, Script: "0s 0 log x"}, "not both"},
		{Config{Job: job, Stores: 17}, "17 stores"},
		{Config{Job: job, Strategy: never}, "not met even by all 5"},
		{Config{Job: job, Strategy: any2}, "share no store"},
		{Config{Job: job, Strategy: odd}, "a vote more must not lose a lock"},
		{Config{Job: job, Order: 3}, "order 3"},
		{Config{Job: job, TTL: time.Millisecond}, "100 ms <= TTL"},
		{Config{Job: job, TTL: time.Minute, MaxTTL: time.Second}, "TTL <= MaxTTL"},
		{Config{Job: job, RenewEvery: 14 * time.Second}, "no second chance"},
		{Config{Job: job, Jitter: -1}, "negative duration"},
		{Config{Job: job, Duration: 25 * time.Hour}, "at most a day"},
		{Config{Job: job, Clients: -1}, "-1 clients"},
		{Config{Job: job, Swarm: true, Faults: []Fault{{Kind: Crash}}}, "a swarm draws the faults"},
		{Config{Job: job, Faults: []Fault{{Kind: "flood"}}}, `"flood" is none of partition, `},
		{Config{Job: job, Faults: []Fault{{Kind: Crash, Stores: []int{5}}}}, "store 5 of 5"},
		{Config{Job: job, Faults: []Fault{{Kind: Pause, Clients: []int{3}}}}, "only 3 clients"},
		{Config{Job: job, Faults: []Fault{{Kind: Pause, Stores: []int{3}}}}, "befalls clients, not stores"},
		{Config{Job: job, Faults: []Fault{{Kind: Crash, Clients: []int{0}}}}, "befalls stores, not clients"},
		{Config{Job: job, Faults: []Fault{{Kind: Crash, From: 2 * time.Minute}}}, "no such time"},
		{Config{Job: job, Faults: []Fault{{Kind: Crash, From: 20, To: 10}}}, "ends before it begins"},
		{Config{Job: job, Faults: []Fault{{Kind: Lossy, PPM: 2_000_000}}}, "0 to 1,000,000"},
		{Config{Job: job, Faults: []Fault{{Kind: Slow, By: -1}}}, "at least 0"},
		{Config{Job: job, Faults: []Fault{{Kind: Drift, PPM: -1_000_000}}}, "cannot run like that"},
		{Config{Job: asking(Ask{TTL: 2 * time.Minute})}, "TTL <= MaxTTL 1m0s"},
		{Config{Job: asking(Ask{Wait: -1})}, "at least 0"},
		{Config{Job: extending(2 * time.Minute)}, "Extend k by 2m0s: above 0, at most MaxTTL 1m0s"},
		{Config{Script: "\n# nothing\n"}, "script has no event"},
		{Config{Script: "0s 0 acquire"}, "line 1: "},
		{Config{Script: "\nsoon 0 acquire k"}, `line 2: time "soon"`},
		{Config{Script: "2m 0 acquire k"}, "that of the run, 1m0s"},
		{Config{Script: "0s 3 acquire k"}, `client "3"`},
		{Config{Script: "0s 0 steal k"}, "is none of: acquire KEY"},
		{Config{Script: "0s 0 acquire k wait"}, `"wait" is none of`},
		{Config{Script: "0s 0 acquire k wait=0s"}, "above 0s"},
		{Config{Script: "0s 0 acquire k ttl=2m"}, "MaxTTL 1m0s"},
		{Config{Script: "0s 0 extend k 2m"}, "MaxTTL 1m0s"},
		{Config{Script: "0s 0 write k"}, "write KEY RESOURCE"},
		{Config{Script: "0s 0 release k now"}, "release KEY"},
	} {
		r, err := Run(c.cfg, 1)
		if err == nil || r != nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "quorumsim: ") {
			t.Errorf("%+v: %v, want an error that says %q", c.cfg, err, c.want)
		}
	}
}

// Every kind that the world knows has a name here, and says whom it befalls.
func TestFaultKindsAreComplete(t *testing.T) {
	all := []FaultKind{
		Partition, PartitionAsk, PartitionReply, Clog, Slow, Hang, Full, Deny, Crash, Restart, Forget, Flush, RollBack,
		ClockStep, ClockRate, ClockFreeze, Pause, Kill, Drift, Doze, Lossy, Echo, Drop,
		Evict, ClockLeap, Twins, Split,
	}
	if len(all) != sim.FaultKinds {
		t.Errorf("%d names for %d kinds", len(all), sim.FaultKinds)
	}
	for i := range sim.FaultKind(sim.FaultKinds) {
		if !slices.Contains(all, FaultKind(i.String())) {
			t.Errorf("no name for %q", i)
		}
	}
	for _, k := range all {
		r := mustRun(t, Config{Job: worker, Faults: []Fault{{Kind: k, From: time.Second, To: 2 * time.Second, PPM: 1000, By: time.Millisecond}}}, 1)
		begun := slices.ContainsFunc(r.History, func(e Event) bool {
			return e.What == Begins && e.At == time.Second && strings.HasPrefix(e.Text, string(k)+" at")
		})
		if !begun {
			t.Errorf("%s: not in the history", k)
		}
	}
}

func TestStrategies(t *testing.T) {
	one := []Fault{{Kind: Partition, Stores: []int{4}}}
	first := func(v uint32, _ int) bool { return v&1 != 0 } // store 0 decides alone
	for _, c := range []struct {
		name     string
		strategy func(uint32, int) bool
		faults   []Fault
		acquired bool
	}{
		{"majority, one store away", nil, one, true},
		{"unanimous", Unanimous, nil, true},
		{"unanimous, one store away", Unanimous, one, false},
		{"the first store, the others away", first, []Fault{{Kind: Partition, Stores: []int{1, 2, 3, 4}}}, true},
		{"the first store, away", first, []Fault{{Kind: Partition, Stores: []int{0}}}, false},
	} {
		r := mustRun(t, Config{Script: "1s 0 acquire k try", Strategy: c.strategy, Faults: c.faults}, 1)
		if (r.Acquired == 1) != c.acquired || len(r.Violations) > 0 {
			t.Errorf("%s: %v", c.name, r)
		}
	}
}

func TestScript(t *testing.T) {
	r := mustRun(t, Config{Clients: 2, TTL: 5 * time.Second, NoFence: []string{"open"}, Faults: []Fault{
		{Kind: Partition, From: 10 * time.Second, To: 30 * time.Second, Clients: []int{0}},
		{Kind: Kill, From: 40 * time.Second, To: 45 * time.Second, Clients: []int{1}},
	}, Script: `
		0s  0 acquire report            # holds until it is cut off
		1s  0 extend  report 15s
		2s  1 acquire report try
		3s  1 release report
		5s  1 acquire report
		26s 1 write   report archive
		26s 1 write   report open
		29s 0 write   report archive
		30s 0 write   report archive anyway
		30s 0 write   report open anyway
		30s 0 release report
		41s 1 log     nobody says this
		50s 1 log     back again
	`}, 1)
	text := r.History.String()
	for _, line := range []string{
		"client 1 logs: cannot acquire report: acquire report: held by another owner\n",
		"client 1 logs: cannot release report: never acquired\n",
		"client 0 logs: cannot write report: report: lease lost: expired\n",
		"client 0 logs: cannot write report: stale token: archive refused token ",
		"client 0 logs: cannot release report: report: lease lost: expired\n",
		"client 1 dies\n",
		"50s client 1 logs: back again\n",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("the history lacks %q", line)
		}
	}
	if strings.Contains(text, "nobody says this") {
		t.Error("a process that was dead made up for what it missed")
	}
	if len(r.Violations) != 1 || r.Violations[0].Check != "stale" || r.Violations[0].Key != "open" {
		t.Errorf("violations %v, want one stale write to the resource without a fence", r.Violations)
	}
	if t.Failed() {
		t.Log(text)
	}
}

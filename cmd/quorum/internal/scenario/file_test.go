package scenario

import (
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

func TestParse(t *testing.T) {
	t.Parallel()
	f, err := Parse([]byte(`
stores: 4
strategy: unanimous
order: first-then-rest
ttl: 3s
max-ttl: 9s
drift: 2.5%
clients: 3
keys: 2
duration: 20s
network: {latency: 2ms, jitter: 5ms, loss: 1%, doubled: 0.5%, late: 2%, late-by: 4s}
faults:
  - {kind: partition-answers, at: 1s, for: 2s, stores: [a, d], clients: [2]}
  - {kind: clock-step, at: 4s, stores: [b], by: -3s}
  - {kind: lossy, at: 5s, for: 1s, stores: [c], by: 20%}
workload: {hold: 4s, think: 1s, wait: 6s, shared: 10%}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := f.config
	if c.Stores != 4 || c.Rule.Need() != 4 || c.Order != core.FirstThenRest || c.TTL != 3*time.Second || c.MaxTTL != 9*time.Second ||
		c.DriftPPM != 25_000 || c.Clients != 3 || c.Keys != 2 || c.Duration != 20*time.Second {
		t.Errorf("the world is %+v", c)
	}
	if want := (sim.Noise{Base: 2e6, Spread: 5e6, Loss: 10_000, Double: 5_000, Late: 20_000, LateBy: 4e9}); c.Plan.Noise != want {
		t.Errorf("the network is %+v, want %+v", c.Plan.Noise, want)
	}
	want := []string{
		"partition of answers at 1s for 2s, stores ad, clients [2]", "clock step at 4s, stores b, by -3s", "lossy at 5s for 1s, stores c, 200000 ppm",
	}
	for i, f := range c.Plan.Faults {
		if f.String() != want[i] {
			t.Errorf("fault %d is %q, want %q", i, f, want[i])
		}
	}
	if w := c.Work; w.Hold != 4*time.Second || w.Think != time.Second || w.Wait != 6*time.Second || w.Shared != 100_000 {
		t.Errorf("the workload is %+v", w)
	}
}

// Every error names the field.
func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ text, says string }{
		{"stroes: 3", `unknown field "stroes"`},
		{"stores: 17", "stores: 17 is not between 1 and 16"},
		{"stores: many", "[1:9]"},
		{"clients: -1", "clients: -1 is not between 1"},
		{"ttl: 3", `"3" is no duration such as 1.5s`},
		{"ttl: -3s", `"-3s" is no duration`},
		{"ttl: 20ms", "TTL 20ms"},
		{"drift: 3", `drift: "3" is no percentage`},
		{"drift: 90%", "drift: 90% is not between"},
		{"strategy: any", `strategy: "any" is neither`},
		{"order: random", `order: "random" is none of`},
		{"mistake: typo", `mistake: "typo" is none of plain-maximum`},
		{"breaks: nothing", `breaks: "nothing" is no checker`},
		{"network: {loss: 101%}", `"101%" is no percentage`},
		{"faults: [{kind: flood}]", `faults: number 1: kind: "flood" is none of partition, partition-requests`},
		{"faults: [{kind: crash}]", "faults: number 1: stores: crash needs some of a to e"},
		{"faults: [{kind: crash, stores: [f]}]", `faults: number 1: stores: "f" is none of a to e`},
		{"faults: [{kind: pause, stores: [a]}]", "faults: number 1: stores: pause befalls clients"},
		{"faults: [{kind: pause, clients: [2]}]", "faults: number 1: clients: 2 is none of 0 to 1"},
		{"faults: [{kind: pause, at: 2m}]", "faults: number 1: at: 2m0s is after the end, 1m0s"},
		{"faults: [{kind: slow, stores: [a]}]", "faults: number 1: by: slow needs a duration"},
		{"faults: [{kind: slow, stores: [a], by: 5%}]", "faults: number 1: by: slow needs a duration"},
		{"faults: [{kind: lossy, stores: [a], by: 5s}]", "faults: number 1: by: lossy needs a percentage"},
		{"faults: [{kind: crash, stores: [a], by: 5s}]", "faults: number 1: by: crash takes none"},
		{"swarm: true\nfaults: [{kind: crash, stores: [a]}]", "faults: with swarm"},
		{"script: 1s 0 acquire k0\nworkload: {hold: 1s}", "workload: there is a script too"},
		{"script: '# nothing'", "script: has no event"},
		{"script: 1s 0 acquire", "script: line 1: \"1s 0 acquire\": an event is"},
		{"script: soon 0 acquire k0", `script: line 1: time "soon"`},
		{"script: 2m 0 acquire k0", `script: line 1: time "2m"`},
		{"script: 1s 2 acquire k0", `script: line 1: client "2": a number from 0 to 1`},
		{"script: 1s 0 acquire k1", `script: line 1: key "k1": one of k0 to k0`},
		{"script: 1s 0 steal k0", `script: line 1: "steal k0" is none of: acquire`},
		{"script: 1s 0 acquire k0 wait=soon", "script: line 1: wait=soon: a duration above 0s"},
		{"script: 1s 0 acquire k0 ttl=1m", "script: line 1: ttl=1m: 100ms to max-ttl, 10s"},
		{"script: 1s 0 acquire k0 quickly", `script: line 1: "quickly" is none of wait=D`},
		{"script: 1s 0 extend k0 never", `script: line 1: extend by "never"`},
	} {
		if _, err := Parse([]byte(tc.text)); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s\n  says %v\n  want %s", tc.text, err, tc.says)
		}
	}
}

// Every verb and option of a script does what it says.
func TestScript(t *testing.T) {
	t.Parallel()
	f, err := Parse([]byte(`
stores: 3
clients: 3
duration: 30s
max-ttl: 20s
script: |
  0s  0 acquire k0 ttl=2s norenew
  1s  0 write   k0
  1s  0 extend  k0 10s
  2s  1 acquire k0 try
  3s  2 acquire k0
  4s  2 cancel  k0
  5s  0 release k0
  6s  1 acquire k0 shared maxhold=2s
  6s  2 acquire k0 shared wait=1s
`))
	if err != nil {
		t.Fatal(err)
	}
	r := f.Show()
	var got []string
	for _, e := range r.Trace.Events {
		switch e.What {
		case sim.Acquires, sim.Fails, sim.Loses, sim.GivesBack, sim.WriteDone:
			got = append(got, e.At.Round(10*time.Millisecond).String()+" "+string(rune('0'+e.Client))+" "+e.What.String())
		}
	}
	want := "0s 0 acquires, 1s 0 write done, 1s 0 write done, 2s 1 fails, 4s 2 fails, 5s 0 gives back, 6s 1 acquires, 6s 2 acquires, 8s 1 loses"
	if text := strings.Join(got, ", "); text != want {
		t.Errorf("what happened:\n%s\nwant\n%s", text, want)
	}
}

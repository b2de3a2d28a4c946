package sim

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

func TestDebug(t *testing.T) {
	seed, err := strconv.Atoi(os.Getenv("DBG"))
	if err != nil {
		t.Skip()
	}
	run := func(cfg Config) *Report { return Run(cfg, Seeded(uint64(seed))) }
	r := RunSeed(uint64(seed), Config{})
	if len(r.Violations) > 0 && os.Getenv("RAW") == "" {
		r = Shrink(r, run)
	}
	cfg := r.Config
	cfg.Trace, cfg.Swarm = true, false
	r = run(cfg)
	fmt.Println(r.Plan, r.Violations)
	lease, _ := strconv.Atoi(os.Getenv("LEASE"))
	for _, e := range r.Trace.Events {
		if lease > 0 && e.Lease != lease && e.What != FaultOn && e.What != FaultOff {
			continue
		}
		fmt.Printf("%v %v c%d s%s l%d m%d key%d %v %v/%v #%d %v tok %d floor %d until %v fail %d reason %d late %v\n", e.At, e.What, e.Client, StoreName(max(e.Store, -1)), e.Lease, e.Msg, e.Key, e.Mode, e.Verb, e.Kind, e.Attempt, e.Outcome, e.Token, e.Floor, e.Until, e.Failure, e.Reason, e.Late)
	}
}

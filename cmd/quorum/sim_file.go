package main

import (
	"os"
	"slices"

	"github.com/quorumlock/quorum/cmd/quorum/internal/scenario"
	"github.com/quorumlock/quorum/internal/sim"
)

// shapeFlags are what a scenario file says itself.
var shapeFlags = []string{"stores", "strategy", "ttl", "order", "drift", "clients", "duration"}

// readScenario reads the file of --file.
func readScenario(name string, given func(string) bool) (*scenario.File, error) {
	if i := slices.IndexFunc(shapeFlags, given); i >= 0 {
		return nil, usagef("--file says what --%s would: leave one of them out", shapeFlags[i])
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, usagef("--file: %v", err)
	}
	f, err := scenario.Parse(text)
	if err != nil {
		return nil, usagef("%s: %v", name, err)
	}
	return f, nil
}

// world is what seeds are run in: one that flags shape, or one of a file.
type world interface {
	config(seed uint64, trace bool) sim.Config
	again(seed uint64, cfg sim.Config) *sim.Report
	replay(seed uint64) string
}

// fileWorld is the world of a scenario file. The seed decides what the file
// leaves open: which of two things at one moment comes first, how long messages
// take, what a workload does.
type fileWorld struct {
	name string
	file *scenario.File
}

func (f *fileWorld) config(_ uint64, trace bool) sim.Config { return f.file.Config(trace) }

func (f *fileWorld) again(seed uint64, cfg sim.Config) *sim.Report { return f.file.Run(seed, cfg) }

func (f *fileWorld) replay(seed uint64) string {
	return "quorum sim --file " + f.name + " --seed " + itoa(seed) + " --trace"
}

// seedOf runs the world of a seed.
func seedOf(w world, seed uint64, trace bool) *sim.Report {
	return w.again(seed, w.config(seed, trace))
}

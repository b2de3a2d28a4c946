package main

import (
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum/internal/sim"
	"github.com/quorumlock/quorum/internal/simpage"
)

// simulation is one call of quorum sim.
type simulation struct {
	shape simShape
	seeds int
	first uint64
	jobs  int
	trace bool
	file  string
}

func newSim() *cobra.Command {
	s := &simulation{}
	cmd := &cobra.Command{
		Use:   "sim [flags]",
		Short: "Run the protocol in a simulated world in which everything fails, and look for a mistake",
		Long: `Run the lock's protocol in a simulated world, once for each seed. A seed decides what the world is made of, what its
clients do and what goes wrong: partitions, lost and late messages, stores that crash, forget, hang or refuse, clocks
that jump, clients that pause or die. Checkers look for two holders, tokens that do not grow, stale writes that a fence
took, and votes left behind; then all faults stop, and whoever waits must get in. Every 20th seed is run twice, and must
repeat exactly.

What a flag sets is the same in every world; the seed draws the rest. A violation is shown with the command that repeats
it and the smallest list of faults that still does.

Exit codes: 0 no violation, 70 there was one, 64 usage.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("sim takes flags, or one of explain and size; see quorum sim --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := cmd.Flags().Changed
			return s.run(given, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.shape.flags(cmd)
	f := cmd.Flags()
	f.IntVar(&s.seeds, "seeds", 1000, "how many seeds to run")
	f.Uint64Var(&s.first, "seed", 0, "the first of them (default: a random one)")
	f.IntVar(&s.jobs, "jobs", runtime.GOMAXPROCS(0), "how many to run at once")
	f.BoolVar(&s.trace, "trace", false, "run the one seed of --seed and print what happens, event by event")

	f.StringVar(&s.file, "file", "", "run the world that this file describes, see docs/simulating.md")
	cmd.AddCommand(newSimExplain(), newSimSize())
	return cmd
}

func (s *simulation) run(given func(string) bool, stdout, stderr io.Writer) error {
	w, err := s.world(given)
	if err != nil {
		return err
	}
	switch {
	case s.seeds < 1 || s.jobs < 1:
		return usagef("--seeds and --jobs must be above zero")
	case s.trace && !given("seed"):
		return usagef("--trace shows one run: name it with --seed")
	case s.trace && given("seeds"):
		return usagef("--trace shows one run: leave --seeds out")
	}
	if s.trace {
		return s.showOne(w, stdout)
	}
	if !given("seed") {
		s.first = rand.Uint64() >> 40 // short enough to type again
	}
	return s.sweep(w, stdout, stderr)
}

// world is what the flags or the file describe.
func (s *simulation) world(given func(string) bool) (world, error) {
	if s.file == "" {
		return &s.shape, s.shape.check(given)
	}
	file, err := readScenario(s.file, given)
	return &fileWorld{s.file, file}, err
}

// showOne replays a seed.
func (s *simulation) showOne(w world, stdout io.Writer) error {
	r := seedOf(w, s.first, true)
	if err := simpage.Text(stdout, r.Trace, r.Violations); err != nil {
		return err
	}
	if len(r.Violations) > 0 {
		return &exitError{codeFailed, nil}
	}
	return nil
}

// sweep runs all seeds and tells what came of them. An interrupt ends it
// early, with a summary of what was run.
func (s *simulation) sweep(w world, stdout, stderr io.Writer) error {
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	defer signal.Stop(interrupted)
	runner := &seedRunner{run: func(seed uint64) *sim.Report { return seedOf(w, seed, false) }, progress: newProgress(stderr, s.seeds)}
	total := runner.all(s.first, s.seeds, s.jobs, interrupted)
	if err := writeSummary(stdout, total, s.first); err != nil {
		return err
	}
	var errs []error
	if len(runner.failed) > 0 {
		errs = append(errs, &exitError{codeFailed, nil})
		writeViolations(stdout, runner.failed, w)
	}
	for _, seed := range runner.unsteady {
		errs = append(errs, &exitError{codeFailed, errors.New("seed " + itoa(seed) + " did not repeat exactly: please report it")})
	}
	return errors.Join(errs...)
}

package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
)

func newChange() *cobra.Command {
	s := set{next: &newSet{}}
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "change [flags] joining|opened|done",
		Short: "Change the set of stores while locks are held",
		Long: `Move the stores of a lock from one set to another while locks are held.

--store and the like name the old set, --new-store and the like the new one. The stores go by way of both, in three
steps, with the clients moving in between:

  quorum change joining   then have every client name both sets (quorum run --store ... --new-store ...)
  quorum change opened    waits until no lease of the old set lasts; then have every client name the new set
  quorum change done      ends the change

Killed at any moment it is called again with the same sets and goes on.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || stageOf(args[0]) == quorum.ChangeNone {
				return usagef("change takes one of: joining, opened, done")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !s.next.given() {
				return usagef("change needs the new set: give --new-store, --new-stores-file or --new-max-ttl")
			}
			return change(cmd.Context(), &s, stageOf(args[0]), wait, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.flags(cmd)
	cmd.Flags().DurationVar(&wait, "wait", 0, "how long to try (default: a minute more than twice the longer --max-ttl)")
	return cmd
}

func stageOf(word string) quorum.ChangeStage {
	for _, stage := range []quorum.ChangeStage{quorum.ChangeJoining, quorum.ChangeOpened, quorum.ChangeDone} {
		if stage.String() == word {
			return stage
		}
	}
	return quorum.ChangeNone
}

func change(ctx context.Context, s *set, until quorum.ChangeStage, wait time.Duration, stdout, stderr io.Writer) error {
	from, to, err := s.ends(ctx, stderr, quorum.Observe(func(e quorum.Event) {
		if e.Kind == quorum.EventChange && e.Left > 0 {
			say(stderr, "waiting %v until no lease of the old set lasts", e.Left.Round(time.Second))
		}
	}))
	if err != nil {
		return err
	}
	if wait <= 0 {
		wait = time.Minute + 2*max(s.maxTTL, s.next.maxTTL)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	report, err := quorum.Change(ctx, from, to, until)
	if report != nil {
		if failed := printChange(stdout, report); failed != nil {
			return failed
		}
	}
	if err != nil && report != nil && report.Stage >= until {
		return &exitError{codeOutage, err} // all is done but at stores that are away
	}
	return err
}

func printChange(w io.Writer, report *quorum.ChangeReport) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "stage: %s\n\nSTORE\tSET\tSTAGE\n", report.Stage)
	for _, s := range report.Stores {
		in := map[[2]bool]string{{true, true}: "both", {true, false}: "old", {false, true}: "new"}[[2]bool{s.Old, s.New}]
		stage := s.Stage.String()
		if s.Err != nil {
			stage = strings.Join(strings.Fields(cause(s.Err)), " ")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", s.Name, in, stage)
	}
	return table.Flush()
}

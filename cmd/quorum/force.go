package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
)

func newForce() *cobra.Command {
	var s set
	var yes bool
	var label string
	cmd := &cobra.Command{
		Use:   "force [flags] KEY",
		Short: "Free a lock that somebody holds",
		Long: `Free the lock KEY, whoever holds it: take it by force, with a higher token, and release it at once.

The holder finds out by its next renewal, and may act under the lock until then: force is for a holder that is gone or
stuck. A resource that compares tokens refuses it from the next holder's first write on.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give one key: quorum force --yes KEY")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !yes {
				return usagef("force takes the lock from a holder that may still be at work; say so with --yes")
			}
			return force(cmd.Context(), &s, args[0], label, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "the holder is gone, or may be robbed of the lock")
	cmd.Flags().StringVar(&label, "label", "", "who forces it: the holder is told; everybody can read it")
	return cmd
}

func force(ctx context.Context, s *set, key, label string, stdout, stderr io.Writer) error {
	locker, err := s.lock(ctx, stderr)
	if err != nil {
		return err
	}
	limit := closeLimit
	defer func() { newNotices(stderr, "").tellLeft(closeWithin(ctx, locker, limit)) }()
	lease, err := locker.Force(ctx, key, quorum.Label(label), quorum.Wait(0))
	if err != nil {
		return err
	}
	if limit, err = giveBack(ctx, lease); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s is free; the token of force was %d\n", key, lease.Token())
	return err
}

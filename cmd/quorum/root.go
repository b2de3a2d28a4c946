package main

import (
	"errors"
	"io"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// execute runs the command line and returns the exit code.
func execute(args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		return 0
	}
	code := codeOf(err)
	own := (*exitError)(nil)
	switch silent := errors.As(err, &own) && own.err == nil; {
	case silent:
	case hint(code, err) != "":
		say(stderr, "%v; %s", err, hint(code, err))
	default:
		say(stderr, "%v", err)
	}
	return code
}

// version is the module's, as it was built: a release, a pseudo-version with
// the commit, or (devel).
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version + " " + info.GoVersion
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "quorum",
		Version:       version(),
		Short:         "Hold a named lock in several independent stores at once",
		Long:          "quorum holds a named lock in one store or in a quorum of independent ones.\n\n" + exitHelp,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no sub-command %q; see quorum --help", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usagef("%v; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newRun(), newStatus(), newForce(), newInit(), newChange(), newDemo(), newSim())
	return root
}

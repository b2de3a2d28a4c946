//go:build !unix

package main

import (
	"runtime"

	"github.com/spf13/cobra"
)

// newRun says that run is missing: processes that are ended with their
// descendants in time are built on Unix signals and process groups.
func newRun() *cobra.Command {
	return &cobra.Command{
		Use:                "run",
		Short:              "Run a command while holding a lock (not on " + runtime.GOOS + ")",
		DisableFlagParsing: true,
		RunE: func(*cobra.Command, []string) error {
			return usagef("run is not supported on %s yet; status, init and demo are", runtime.GOOS)
		},
	}
}

//go:build unix

package main

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// ending are the signals that end a wait for the lock.
var ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// catchSignals catches what is passed on to the command, before anything is
// locked: no signal can then end quorum and leave a lock or a command behind.
// What quorum was started to ignore, as by nohup or by "&" in a script, it and
// the command go on ignoring.
func catchSignals() chan os.Signal {
	caught := make(chan os.Signal, 64)
	for _, sig := range append(slices.Clone(ending), syscall.SIGUSR1, syscall.SIGUSR2) {
		if !signal.Ignored(sig) {
			signal.Notify(caught, sig)
		}
	}
	signal.Notify(caught, syscall.SIGCONT)
	// A reader of stderr that went away must not end quorum either. Caught and
	// dropped rather than ignored, since the command would inherit that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	return caught
}

// endingAmong takes what signals have come and returns the first that ends a
// wait, or nil.
func endingAmong(signals <-chan os.Signal) os.Signal {
	for {
		select {
		case sig := <-signals:
			if slices.Contains(ending, sig) {
				return sig
			}
		default:
			return nil
		}
	}
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"

	"github.com/quorumlock/quorum"
)

// The exit codes of quorum itself. None lies in 126..165, where shells put
// what they and signals did; those below 64 are left to commands. They follow
// sysexits.h where it has a word for the case.
const (
	codeUsage         = 64  // EX_USAGE: flags, DSNs or settings make no sense
	codeOutage        = 69  // EX_UNAVAILABLE: too few stores answered
	codeFailed        = 70  // EX_SOFTWARE: anything else, such as a failed demo
	codeContention    = 75  // EX_TEMPFAIL: somebody else has the lock
	codeLost          = 76  // the lock was lost, and the command was ended
	codeMismatch      = 78  // EX_CONFIG: the stores serve another set
	codeNotExecutable = 126 // as in a shell
	codeNotFound      = 127 // as in a shell
	codeSignal        = 128 // plus the signal's number
)

const exitHelp = `Exit codes:
  0..255   the command's own
  64       usage: a flag, DSN or setting makes no sense
  69       outage: too few stores answered to decide
  70       anything else failed
  75       contention: somebody else has the lock (another code with -E)
  76       lost: the lock was lost, and the command was ended
  78       the stores serve another set of stores or another --max-ttl
  126      the command is not executable
  127      the command was not found
  128+n    signal n ended the command, or the wait for the lock`

// exitError is an error with the exit code that it leads to. A nil err says
// that there is nothing more to tell.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// startError is why a command could not be started. It alone leads to the codes
// of a shell for that: a store's directory may be missing or forbidden too.
type startError struct{ err error }

func (e *startError) Error() string { return "cannot run the command: " + e.err.Error() }

func (e *startError) Unwrap() error { return e.err }

func (e *startError) code() int {
	for _, missing := range []error{exec.ErrNotFound, fs.ErrNotExist} {
		if errors.Is(e.err, missing) {
			return codeNotFound
		}
	}
	for _, no := range []error{fs.ErrPermission, syscall.ENOEXEC, syscall.EISDIR, exec.ErrDot} {
		if errors.Is(e.err, no) {
			return codeNotExecutable
		}
	}
	return codeFailed
}

func usagef(format string, args ...any) error {
	return &exitError{codeUsage, fmt.Errorf(format, args...)}
}

// codeOf finds the exit code of an error of the library or of ours.
func codeOf(err error) int {
	if own := (*exitError)(nil); errors.As(err, &own) {
		return own.code
	}
	if command := (*startError)(nil); errors.As(err, &command) {
		return command.code()
	}
	for _, c := range []struct {
		match error
		code  int
	}{
		{quorum.ErrHeld, codeContention},
		{quorum.ErrMismatch, codeMismatch},
		{quorum.ErrLost, codeLost},
		{quorum.ErrNoQuorum, codeOutage},
		{quorum.ErrExpired, codeOutage},
		{quorum.ErrInvalidKey, codeUsage},
		{quorum.ErrInvalidTTL, codeUsage},
		{quorum.ErrInvalidOption, codeUsage},
		{quorum.ErrUnsupported, codeUsage},
	} {
		if errors.Is(err, c.match) {
			return c.code
		}
	}
	return codeFailed
}

// hint says what to do next about an error, where it does not say so itself.
// The votes that it brings decide, and not events: those may come later.
func hint(code int, err error) string {
	if op := (*quorum.OpError)(nil); code == codeOutage && errors.As(err, &op) && inQuarantine(op.Votes) {
		return quarantineHint
	}
	if op := (*quorum.OpError)(nil); code == codeMismatch && errors.As(err, &op) && len(op.Votes) == 0 {
		return "" // it is not the stores that differ
	}
	switch code {
	case codeContention:
		return "give it longer with --wait, or see who has it with quorum status"
	case codeOutage:
		return "see which stores answer with quorum status"
	case codeMismatch:
		return "give every client the same stores and --max-ttl"
	}
	return ""
}

// say writes one line for people. Every line of quorum begins alike, so that
// it can be told from the command's own.
func say(w io.Writer, format string, args ...any) {
	text := strings.TrimPrefix(fmt.Sprintf(format, args...), "quorum: ")
	text = strings.ReplaceAll(text, "\n", "; ")
	_, _ = fmt.Fprintf(w, "quorum: %s\n", text)
}

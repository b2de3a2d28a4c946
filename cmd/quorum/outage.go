package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/quorum"
)

// failures keeps what went wrong with each store last. The attempt that is
// told of may not have reached a store, or run out of time on it, and only an
// earlier one says why.
type failures struct {
	mu   sync.Mutex
	last map[string]error
}

func (f *failures) note(store string, err error) {
	if err == nil || saysNothing(err) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = make(map[string]error)
	}
	f.last[store] = err
}

// saysNothing is true of an error that says only that time was over.
func saysNothing(err error) bool {
	var op *net.OpError
	switch text := err.Error(); {
	case errors.As(err, &op):
		return false
	case text == "no answer yet", text == "no answer in time", strings.HasPrefix(text, "not waited for"):
		return true
	}
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// text lists the stores that did not grant, and why: those that say the same
// together.
func (f *failures) text(votes []quorum.Vote) string {
	var reasons []string
	stores := map[string][]string{}
	for _, v := range votes {
		if v.Outcome == quorum.OutcomeGranted {
			continue
		}
		f.note(v.Store, v.Err)
		f.mu.Lock()
		err := v.Err
		if last := f.last[v.Store]; last != nil && (err == nil || saysNothing(err)) {
			err = last
		}
		f.mu.Unlock()
		reason := v.Outcome.String()
		if err != nil {
			reason = cause(err) + doubt(v.Store, err)
		}
		if stores[reason] == nil {
			reasons = append(reasons, reason)
		}
		stores[reason] = append(stores[reason], v.Store)
	}
	for i, reason := range reasons {
		reasons[i] = strings.Join(stores[reason], ", ") + ": " + reason
	}
	return strings.Join(reasons, "; ")
}

// doubt names what a silent server may be about: one that does not speak TLS waits
// for the rest of what it takes for a request.
func doubt(store string, err error) string {
	scheme, _, _ := strings.Cut(store, "://")
	if silent := saysNothing(err) || strings.HasPrefix(err.Error(), "no answer"); silent && (scheme == "rediss" || scheme == "etcds" || scheme == "consuls") {
		return " (does it speak TLS?)"
	}
	return ""
}

// cause is what an error comes down to, in one line: of a network's error what
// the network said, without the way there.
func cause(err error) string {
	text := err.Error()
	if op := (*net.OpError)(nil); errors.As(err, &op) {
		text = op.Error()
	} else if refused := (*quorum.RefusedError)(nil); errors.As(err, &refused) {
		text = refused.Error()
	}
	return strings.ReplaceAll(strings.TrimPrefix(text, "quorum: "), "\n", "; ")
}

// outageError is an outage with each store's cause, also one that an earlier
// attempt met: the library's text is about the last.
type outageError struct {
	*quorum.OpError
	text string
}

func (e *outageError) Error() string { return e.text }

func (e *outageError) Unwrap() error { return e.OpError }

// explain gives an outage its causes. Other errors say enough.
func (f *failures) explain(err error) error {
	op := (*quorum.OpError)(nil)
	if !errors.Is(err, quorum.ErrNoQuorum) || !errors.As(err, &op) || len(op.Votes) == 0 {
		return err
	}
	granted := 0
	for _, v := range op.Votes {
		if v.Outcome == quorum.OutcomeGranted {
			granted++
		}
	}
	return &outageError{op, fmt.Sprintf("%s %q: too few stores answered within %v (%d granted, %d needed): %s",
		op.Op, op.Key, op.Took.Round(time.Millisecond), granted, op.Need, f.text(op.Votes))}
}

// inQuarantine reports whether stores that may have forgotten are among those
// that did not grant.
func inQuarantine(votes []quorum.Vote) bool {
	for _, v := range votes {
		if v.Outcome == quorum.OutcomeQuarantined {
			return true
		}
	}
	return false
}

const quarantineHint = "a store that may have forgotten does not vote for up to --max-ttl; " +
	"if the stores are new, quorum init ends the wait"

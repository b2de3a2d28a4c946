// Package storetest checks that a [quorum.Store] keeps the contract, and
// spoils a store's calls on purpose.
//
// [Run] is for whoever writes a store: more than a hundred small checks, each a named
// subtest that prints one line of explanation when it fails. [Spoil] is for
// whoever uses one: it wraps a store and delays, loses, doubles or hangs calls
// as it is told, and keeps a log of them.
package storetest

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// Factory says how the suite gets at a store. Only New is required.
type Factory struct {
	// New returns an empty store that nobody else uses, always under the same
	// name. It is called once for each check. A [quorum.HighWater] that starts
	// in quarantine is declared fresh by the suite.
	New func(t *testing.T) quorum.Store
	// Second returns another handle of the first one's server, as another
	// client would have it.
	Second func(t *testing.T, first quorum.Store) quorum.Store
	// Advance moves the clock by which the newest store of New counts. Without
	// it the suite waits in real time, and polls.
	Advance func(d time.Duration)
	// Restart makes the store of New forget votes and counters, as a crash of
	// its server may. It is only asked of a store whose Limits say Forgets.
	Restart func(t *testing.T, s quorum.Store)
	// Parallel lets the checks run side by side: stores of New then must not
	// disturb one another, and Advance must be nil.
	Parallel bool
	// Seed replays the random requests of a run that failed; 0 draws others
	// each time.
	Seed uint64
}

// Run checks the stores of f, each check as a subtest of t. A check for an
// ability that the store's Limits deny or that the Factory gives no access to
// is skipped, and says so.
//
// What the suite does not show: that a store keeps its promises when its server
// is killed, fails over or runs out of memory; test those on the real server.
func Run(t *testing.T, f Factory) {
	t.Helper()
	if f.Parallel && f.Advance != nil {
		t.Fatal("storetest: Parallel with Advance: the checks would move one another's clock")
	}
	for _, c := range checks() {
		t.Run(c.name, func(t *testing.T) {
			if f.Parallel {
				t.Parallel()
			}
			r := c.examine(t, f)
			for _, failure := range r.failures {
				t.Error(failure)
			}
			switch {
			case len(r.failures) > 0:
				t.Logf("why it matters: %s", c.why)
			case r.skipped != "":
				t.Skip(r.skipped)
			}
		})
	}
}

// check is one line of the contract.
type check struct {
	name string
	why  string // what goes wrong where it does not hold; one line
	run  func(c *call)
}

// checks lists the whole suite, in the order of the contract.
func checks() []check {
	var all []check
	for _, group := range [][]check{
		acquireChecks, attemptChecks, extendChecks, releaseChecks, tokenChecks, repairChecks,
		sharedChecks, convertChecks, forceChecks, expiryChecks, keyChecks, requestChecks,
		concurrentChecks, inspectChecks, quarantineChecks, forgetChecks, setChecks, handleChecks, modelChecks,
		queueChecks, watchChecks, queueModelChecks,
	} {
		all = append(all, group...)
	}
	return all
}

// result is what a check came to. It is collected rather than told to the test
// at once, so that the suite's own tests can see a broken store fail.
type result struct {
	failures []string
	skipped  string
}

// stop ends a check early; examine recovers it.
type stop struct{}

// examine runs a check on a store of its own.
func (c check) examine(t *testing.T, f Factory) (r *result) {
	r = &result{}
	defer func() {
		switch p := recover(); p.(type) {
		case nil, stop:
		default:
			stack := make([]byte, 4096)
			r.failures = append(r.failures, fmt.Sprintf("panic: %v\n%s", p, stack[:runtime.Stack(stack, false)]))
		}
	}()
	c.run(newCall(t, f, c.name, r))
	return r
}

// failf records a failure at the line of the check that called.
func (r *result) failf(format string, args ...any) {
	where := "?"
	for skip := 1; skip < 12; skip++ {
		_, file, line, ok := runtime.Caller(skip)
		if !ok {
			break
		}
		// The helpers live in call.go and here; the first frame beyond them is
		// the line of the check.
		if base := filepath.Base(file); base != "call.go" && base != "storetest.go" && base != "check_model.go" {
			where = fmt.Sprintf("%s:%d", base, line)
			break
		}
	}
	r.failures = append(r.failures, where+": "+fmt.Sprintf(format, args...))
}

// roundUp returns the first multiple of grain that is at least d.
func roundUp(d, grain time.Duration) time.Duration {
	if grain <= 0 || d > math.MaxInt64-grain {
		return d
	}
	return (d + grain - 1) / grain * grain
}

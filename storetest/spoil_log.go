package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/quorumlock/quorum"
)

// Verb is a method of a store or of one of its abilities.
type Verb uint8

// The verbs.
const (
	VerbAcquire Verb = iota
	VerbExtend
	VerbRelease
	VerbReadStep
	VerbRaise
	VerbInspect
	VerbServes
	VerbServe
	VerbWatch
)

// String names the verb in lower case.
func (v Verb) String() string {
	return [...]string{"acquire", "extend", "release", "read step", "raise", "inspect", "serves", "serve", "watch"}[v]
}

// Call is one call that a [Spoiled] met.
type Call struct {
	Verb    Verb
	N       int // 1 for the first call of its verb
	Request quorum.Request
	At      time.Time     // when it came
	Context error         // its context's error when it came
	Left    time.Duration // until its context's deadline when it came; 0 where there is none
	Sent    int           // how often its request reached the store so far
	Done    bool          // it has been answered; the rest is set then
	Took    time.Duration
	Outcome quorum.Outcome // as the caller was told
	Err     error          // as the caller was told
}

// String shows the call in one line, without the owner's secret.
func (c Call) String() string {
	text := fmt.Sprintf("%s #%d %q by %s", c.Verb, c.N, c.Request.Key, c.Request.Owner)
	if c.Context != nil {
		text += fmt.Sprintf(", %v on arrival", c.Context)
	}
	if !c.Done {
		return text + ", under way"
	}
	return text + fmt.Sprintf(", sent %d times: %s after %v", c.Sent, c.Outcome, c.Took)
}

// Log returns the calls so far that match, in the order in which they came;
// with a nil match all of them.
func (s *Spoiled) Log(match func(Call) bool) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	var calls []Call
	for _, c := range s.log {
		if match == nil || match(*c) {
			calls = append(calls, *c)
		}
	}
	return calls
}

// Verbs matches calls of any of the verbs.
func Verbs(verbs ...Verb) func(Call) bool {
	return func(c Call) bool { return slices.Contains(verbs, c.Verb) }
}

// Kinds matches Acquire calls of any of the kinds.
func Kinds(kinds ...quorum.Kind) func(Call) bool {
	return func(c Call) bool { return c.Verb == VerbAcquire && slices.Contains(kinds, c.Request.Kind) }
}

// Nth matches the calls of the verb with these numbers, 1 being the first.
func Nth(v Verb, numbers ...int) func(Call) bool {
	return func(c Call) bool { return c.Verb == v && slices.Contains(numbers, c.N) }
}

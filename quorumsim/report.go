package quorumsim

import (
	"fmt"
	"strings"
	"time"
)

// Report is what came of a run. Its counts are of the jobs, so they end when
// Duration is over; the [History] goes on until the world has come to rest.
type Report struct {
	Seed   uint64
	Digest uint64 // of everything that happened, messages and all: equal for equal runs

	Asked    int // acquisitions begun
	Acquired int
	Failed   int
	Renewed  int
	Missed   int // renewals that found too few stores
	Lost     int
	Released int
	Taken    int // writes
	Refused  int // writes, by a fence
	Messages int // to stores

	Faults     []string // each in a line
	Elapsed    time.Duration
	History    History
	Violations []Violation
}

func (r *Report) count(what What) {
	switch what {
	case Asks:
		r.Asked++
	case Acquires:
		r.Acquired++
	case Fails:
		r.Failed++
	case Renews:
		r.Renewed++
	case Misses:
		r.Missed++
	case Loses:
		r.Lost++
	case Releases:
		r.Released++
	case Takes:
		r.Taken++
	case Refuses:
		r.Refused++
	}
}

// String tells the report in a few lines, the history left out.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d asked, %d acquired, %d failed, %d lost, %d given back\n",
		r.Seed, r.Asked, r.Acquired, r.Failed, r.Lost, r.Released)
	fmt.Fprintf(&b, "%d renewals, %d that found too few stores; %d messages\n", r.Renewed, r.Missed, r.Messages)
	fmt.Fprintf(&b, "%d writes taken, %d refused\n", r.Taken, r.Refused)
	for _, f := range r.Faults {
		fmt.Fprintf(&b, "fault: %s\n", f)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "VIOLATION %v\n", v)
	}
	return b.String()
}

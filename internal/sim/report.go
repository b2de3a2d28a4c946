package sim

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/quorumlock/quorum/internal/core"
)

// Report is what came of a run, or of several.
type Report struct {
	Runs       int
	Seed       uint64 // of one run
	Hash       uint64 // of one run: equal for equal runs
	Config     Config // of one run, defaults filled in
	Plan       Plan   // of one run
	Events     int64
	Elapsed    time.Duration // simulated
	Faults     [FaultKinds]int
	Asked      int
	Attempts   int
	Messages   int
	Acquired   int
	Failed     [core.ByAbandoned + 1]int
	Renewed    int
	Promoted   int // readers that became writers
	Demoted    int // writers that became readers
	Stayed     int // changes of mode that failed
	Missed     int // renewals that found too few stores
	Lost       [core.LostClosed + 1]int
	Released   int
	Refills    int
	Alone      int // of them on the servers' clocks alone
	Writes     int
	Refused    int // writes that the fence refused
	Stale      int // writes of an earlier holder that the resource without a fence took
	Contended  int // attempts that failed because somebody else held
	Taken      Spread
	Held       Spread
	Wakes      [core.WakeEnded + 1]int // by kind, that reached a lease
	Deaf       int                     // that were lost
	Violations []Violation
	Trace      *Trace // if one was asked for
}

// Add adds the counts of another report; hash, plan, trace and seed stay.
func (r *Report) Add(o *Report) {
	r.Runs += o.Runs
	r.Events += o.Events
	r.Elapsed += o.Elapsed
	for i := range r.Faults {
		r.Faults[i] += o.Faults[i]
	}
	for i := range r.Failed {
		r.Failed[i] += o.Failed[i]
	}
	for i := range r.Lost {
		r.Lost[i] += o.Lost[i]
	}
	for i := range r.Wakes {
		r.Wakes[i] += o.Wakes[i]
	}
	for _, p := range [...][2]*int{
		{&r.Asked, &o.Asked}, {&r.Attempts, &o.Attempts}, {&r.Messages, &o.Messages}, {&r.Acquired, &o.Acquired},
		{&r.Renewed, &o.Renewed}, {&r.Promoted, &o.Promoted}, {&r.Demoted, &o.Demoted}, {&r.Stayed, &o.Stayed}, {&r.Missed, &o.Missed}, {&r.Released, &o.Released}, {&r.Refills, &o.Refills},
		{&r.Alone, &o.Alone}, {&r.Writes, &o.Writes}, {&r.Refused, &o.Refused}, {&r.Stale, &o.Stale}, {&r.Contended, &o.Contended}, {&r.Deaf, &o.Deaf},
	} {
		*p[0] += *p[1]
	}
	r.Taken.add(&o.Taken)
	r.Held.add(&o.Held)
	r.Violations = append(r.Violations, o.Violations...)
}

// Replay is the command that repeats the run of a seed.
func Replay(seed uint64) string { return fmt.Sprintf("quorum sim --seed %d --trace", seed) }

// String tells a report in a few lines.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d runs, %d events, %v simulated\n", r.Runs, r.Events, r.Elapsed.Round(time.Millisecond))
	fmt.Fprintf(&b, "%d asked, %d acquired, %d given back; %d attempts of which %d found it held, %d messages\n",
		r.Asked, r.Acquired, r.Released, r.Attempts, r.Contended, r.Messages)
	fmt.Fprintf(&b, "time to acquire %v; held %v\n", &r.Taken, &r.Held)
	b.WriteString("lost:")
	for i, n := range r.Lost {
		if n > 0 {
			fmt.Fprintf(&b, " %s %d", reasonNames[i], n)
		}
	}
	b.WriteString("\nfaults:")
	for i, n := range r.Faults {
		if n > 0 {
			fmt.Fprintf(&b, " %v %d", FaultKind(i), n)
		}
	}
	fmt.Fprintf(&b, "\n%d writes, %d refused by the fence, %d stale ones taken without a fence\n", r.Writes, r.Refused, r.Stale)
	fmt.Fprintf(&b, "%d stores left quarantine, %d of them on clocks alone\n", r.Refills, r.Alone)
	if r.Wakes != [len(r.Wakes)]int{} {
		b.WriteString("told:")
		for i, n := range r.Wakes {
			fmt.Fprintf(&b, " %v %d", core.WakeKind(i), n)
		}
		fmt.Fprintf(&b, "; %d lost\n", r.Deaf)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "VIOLATION %v\n", v)
	}
	return b.String()
}

var reasonNames = [core.LostClosed + 1]string{"", "expired", "taken over", "quorum", "max hold", "forced", "closed"}

// ReasonName says a loss reason in words.
func ReasonName(r core.Reason) string { return reasonNames[r] }

// Spread counts durations in buckets an eighth of a power of two wide, so that
// quantiles are right to within 12 %.
type Spread struct {
	counts [512]uint32
	N      int
	Max    time.Duration
}

func bucket(d time.Duration) int {
	if d < 8 {
		return int(max(d, 0))
	}
	top := bits.Len64(uint64(d)) - 1
	return (top-2)*8 + int(uint64(d)>>(top-3)&7)
}

// Count adds one duration.
func (s *Spread) Count(d time.Duration) {
	s.counts[bucket(d)]++
	s.N++
	s.Max = max(s.Max, d)
}

func (s *Spread) add(o *Spread) {
	for i := range s.counts {
		s.counts[i] += o.counts[i]
	}
	s.N += o.N
	s.Max = max(s.Max, o.Max)
}

// Quantile returns the duration below which a part of the counted ones lies; 0
// of nothing.
func (s *Spread) Quantile(part float64) time.Duration {
	left := int(part * float64(s.N))
	for i, n := range s.counts {
		if left -= int(n); n > 0 && left <= 0 {
			if i < 8 {
				return time.Duration(i)
			}
			top := i/8 + 2
			return min(time.Duration(uint64(8+i%8)<<(top-3)), s.Max)
		}
	}
	return s.Max
}

// String shows three quantiles.
func (s *Spread) String() string {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond / 10) }
	return fmt.Sprintf("p50 %v, p99 %v, most %v", ms(s.Quantile(0.5)), ms(s.Quantile(0.99)), ms(s.Max))
}

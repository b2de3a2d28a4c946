package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// writeSummary tells what came of all runs together.
func writeSummary(w io.Writer, r *sim.Report, first uint64) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, "%s\t%s\n", name, fmt.Sprintf(format, args...)) }
	row("runs", "%d, seeds %d to %d; %d events, %v simulated", r.Runs, first, first+uint64(max(r.Runs, 1))-1, r.Events, r.Elapsed.Round(time.Second))
	row("faults", "%s", listed(len(r.Faults), func(i int) (string, int) { return sim.FaultKind(i).String(), r.Faults[i] }))
	row("acquisitions", "%d asked for, %d got in, %d given back, %d renewals, %d missed", r.Asked, r.Acquired, r.Released, r.Renewed, r.Missed)
	row("failed", "%s", listed(len(r.Failed), func(i int) (string, int) { return failureNames[i], r.Failed[i] }))
	row("contention", "%d of %d attempts found it held", r.Contended, r.Attempts)
	row("lost", "%s", listed(len(r.Lost), func(i int) (string, int) { return sim.ReasonName(core.Reason(i)), r.Lost[i] }))
	row("messages", "%d, %.1f an attempt", r.Messages, float64(r.Messages)/float64(max(r.Attempts, 1)))
	row("time to acquire", "%s", quantiles(&r.Taken))
	row("time held", "%s", quantiles(&r.Held))
	row("writes", "%d; %d stale ones refused by the fence, %d taken by a resource without one", r.Writes, r.Refused, r.Stale)
	row("quarantine", "%d stores left it, %d of them on clocks alone", r.Refills, r.Alone)
	return t.Flush()
}

var failureNames = [...]string{"", "held", "no quorum", "mismatch", "expired", "abandoned"}

// listed names what there is at least one of.
func listed(n int, at func(int) (string, int)) string {
	var parts []string
	for i := range n {
		if name, count := at(i); count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", count, name))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func quantiles(s *sim.Spread) string {
	at := func(part float64) time.Duration { return readable(s.Quantile(part)) }
	return fmt.Sprintf("p50 %v, p90 %v, p99 %v, most %v", at(0.5), at(0.9), at(0.99), readable(s.Max))
}

// readable leaves three digits or so of a duration.
func readable(d time.Duration) time.Duration {
	switch {
	case d >= 10*time.Second:
		return d.Round(100 * time.Millisecond)
	case d >= time.Second:
		return d.Round(10 * time.Millisecond)
	}
	return d.Round(100 * time.Microsecond)
}

// writeViolations tells what is wrong with the first seeds that failed: the
// command that repeats each, and of the first the smallest plan that does.
func writeViolations(w io.Writer, failed []*sim.Report, in world) {
	fmt.Fprintf(w, "\n%d of the seeds FAILED\n", len(failed))
	for i, r := range failed[:min(len(failed), keepFailed)] {
		v := r.Violations[0]
		fmt.Fprintf(w, "\nseed %d, at %v, %v: %s\nreplay: %s\n", r.Seed, readable(v.At), v.Checker, v.Text, in.replay(r.Seed))
		if i == 0 {
			small := sim.Shrink(r, func(cfg sim.Config) *sim.Report { return in.again(r.Seed, cfg) })
			fmt.Fprintf(w, "smallest list of faults that still fails:\n%s", indent(small.Plan.String()))
		}
	}
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"
}

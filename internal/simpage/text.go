package simpage

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/quorumlock/quorum/internal/sim"
)

// Text writes what happened, a line for each event, after some lines on the
// world. violations are those of the same run.
func Text(out io.Writer, t *sim.Trace, violations []sim.Violation) error {
	w := newWords(t, violations)
	b := bufio.NewWriter(out)
	c := &t.Config
	fmt.Fprintf(b, "# %d stores, %d of them needed at least; %d clients; %v\n", c.Stores, c.Rule.Need(), c.Clients, c.Order)
	fmt.Fprintf(b, "# TTL %v, at most %v, renewed every %v; drift allowed for %g %% and %v\n",
		c.TTL, c.MaxTTL, c.RenewEvery, float64(c.DriftPPM)/10_000, c.DriftFixed)
	for line := range strings.Lines(t.Plan.String()) {
		fmt.Fprintf(b, "# %s", line)
	}
	fmt.Fprintf(b, "# tokens are shown without %d x 2^26; n:m is m in the n-th step above that\n", w.step)
	for i := range t.Events {
		e := &t.Events[i]
		fmt.Fprintf(b, "%11.6f  %s\n", e.At.Seconds(), w.event(e))
	}
	return b.Flush()
}

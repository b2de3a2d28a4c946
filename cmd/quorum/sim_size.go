package main

import (
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/sim"
)

// sizing is one call of quorum sim size.
type sizing struct {
	stores     []int
	ttls       []time.Duration
	orders     []string
	strategies []string
	load       string
	seeds      int
	first      uint64
}

// choice is a row of the table: a set that one could have.
type choice struct {
	stores   int
	ttl      time.Duration
	order    string
	strategy string
}

func newSimSize() *cobra.Command {
	s := &sizing{}
	cmd := &cobra.Command{
		Use:   "size [flags]",
		Short: "Compare numbers of stores, TTLs, orders and strategies under a load of faults",
		Long: `Run the lock in simulated worlds of each size, under the same load of faults, and print for each:

  got in        share of the acquisitions that got the lock within 30 s, each of a lock that nobody else wants
  to get it     time that took, half of them and 99 of 100
  losses        leases lost while their holder was alive and wanted them, in an hour held
  false expiry  share of leases lost like that because they could not be renewed in time
  take over     time from a holder's death until another has the lock, half of them and 99 of 100
  messages      for each lock taken, renewals and releases included

Loads: calm (no fault; messages take 0.5 to 5 ms), typical (some lost and late messages, a short pause of a client
every minute or so, and every few minutes a store that restarts, crashes or is cut off for some seconds), hostile
(the same every ten seconds, so that several often coincide).

The figures come from the loads, not from your machines: compare rows with each other.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("size takes flags only; see quorum sim size --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return s.run(cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.IntSliceVar(&s.stores, "stores", []int{1, 3, 5}, "numbers of stores")
	f.DurationSliceVar(&s.ttls, "ttl", []time.Duration{5 * time.Second, 15 * time.Second, 30 * time.Second}, "TTLs")
	f.StringSliceVar(&s.orders, "order", []string{"in-order"}, "orders of asking: "+orderNames)
	f.StringSliceVar(&s.strategies, "strategy", []string{"majority"}, "strategies: majority or unanimous")
	f.StringVar(&s.load, "load", "typical", "what goes wrong: calm, typical or hostile")
	f.IntVar(&s.seeds, "seeds", 6, "runs of ten minutes for each row; more are more exact")
	f.Uint64Var(&s.first, "seed", 1, "the first of them")
	return cmd
}

// choices are the rows, or what is wrong with the flags.
func (s *sizing) choices() ([]choice, error) {
	if _, err := loadOf(s.load); err != nil {
		return nil, usagef("--load: %v", err)
	}
	if s.seeds < 1 {
		return nil, usagef("--seeds %d: at least 1", s.seeds)
	}
	var out []choice
	for _, n := range s.stores {
		if n < 1 || n > core.MaxMembers {
			return nil, usagef("--stores %d: a set has 1 to %d", n, core.MaxMembers)
		}
		for _, ttl := range s.ttls {
			if ttl < 100*time.Millisecond || ttl > 10*time.Minute {
				return nil, usagef("--ttl %v: 100ms to 10m", ttl)
			}
			for _, order := range s.orders {
				if _, err := orderOf(order); err != nil {
					return nil, usagef("--order: %v", err)
				}
				for _, strategy := range s.strategies {
					if _, err := ruleOf(strategy, n); err != nil {
						return nil, usagef("--strategy: %v", err)
					}
					out = append(out, choice{n, ttl, order, strategy})
				}
			}
		}
	}
	return out, nil
}

func (s *sizing) run(stdout io.Writer) error {
	rows, err := s.choices()
	if err != nil {
		return err
	}
	results := make([]measured, len(rows))
	running := sync.WaitGroup{}
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, row := range rows {
		slots <- struct{}{}
		running.Go(func() {
			results[i] = s.measure(row)
			<-slots
		})
	}
	running.Wait()
	fmt.Fprintf(stdout, "load %s, %d runs of %v a row, seeds from %d\n\n", s.load, s.seeds, sizeSpan, s.first)
	t := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "stores\tTTL\torder\tstrategy\tgot in\tto get it\tlosses/h\tfalse expiry\ttake over\tmessages\t")
	for i, row := range rows {
		fmt.Fprintf(t, "%d\t%v\t%s\t%s\t%s\n", row.stores, row.ttl, row.order, row.strategy, &results[i])
	}
	return t.Flush()
}

// measured is what came of a row.
type measured struct {
	alone    sim.Report    // clients with a lock of their own each
	held     time.Duration // by them, together
	takeOver sim.Spread
}

func (m *measured) String() string {
	r := &m.alone
	lost, expired := 0, r.Lost[core.LostExpired]
	for _, n := range r.Lost {
		lost += n
	}
	return strings.Join([]string{
		share(r.Acquired, r.Asked), halfAndMost(&r.Taken), strconv.FormatFloat(float64(lost)/max(m.held.Hours(), 1e-9), 'f', 2, 64),
		share(expired, r.Acquired), halfAndMost(&m.takeOver), strconv.FormatFloat(float64(r.Messages)/float64(max(r.Acquired, 1)), 'f', 1, 64), "",
	}, "\t")
}

// share is a percentage that says 100 only of all and 0 only of none.
func share(part, all int) string {
	switch percent := 100 * float64(part) / float64(max(all, 1)); {
	case part == 0:
		return "0 %"
	case part == all:
		return "100 %"
	default:
		return strconv.FormatFloat(math.Min(percent, 99.99), 'f', 2, 64) + " %"
	}
}

func halfAndMost(s *sim.Spread) string {
	if s.N == 0 {
		return "never"
	}
	return fmt.Sprintf("%v, %v", readable(s.Quantile(0.5)), readable(s.Quantile(0.99)))
}

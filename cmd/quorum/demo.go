package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
)

// The lock of the demo is short-lived, so that restarted nodes come back and
// lost locks are seen within seconds.
const (
	demoKey    = "quorum-demo"
	demoTTL    = time.Second
	demoMaxTTL = time.Second // of the demo's own nodes
	demoNodes  = 5
)

// demo is several workers that contend for one lock while its nodes fail.
type demo struct {
	set
	duration time.Duration
	seed     uint64
	workers  int

	nodes *nodes // nil when the stores are somebody else's
	guard *guard
	show  *screen
	fail  context.CancelCauseFunc // ends the demo, which would show nothing
}

func newDemo() *cobra.Command {
	d := &demo{}
	cmd := &cobra.Command{
		Use:   "demo [flags]",
		Short: "Watch workers contend for a lock while its nodes are killed and restarted",
		Long: `Start five small Redis-compatible nodes in this process, let several workers contend for one lock on them, kill and
restart nodes meanwhile, and say at the end whether two workers ever held the lock together and whether the fencing
tokens only grew. A guard outside the lock decides that.

With --store or --stores-file the nodes are yours, and none is killed. QUORUM_STORES is not read.

Exit codes: 0 all was well, 70 it was not, 78 the stores serve another set, 64 usage.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("demo takes flags only; see quorum demo --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return d.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	d.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&d.duration, "duration", 10*time.Second, "how long to run")
	f.Uint64Var(&d.seed, "seed", 0, "decides which nodes fail when, and how long workers hold (default: a random one)")
	f.IntVar(&d.workers, "workers", 4, "how many workers contend")
	return cmd
}

func (d *demo) run(ctx context.Context, stdout, stderr io.Writer) error {
	if d.duration <= 0 || d.workers < 1 {
		return usagef("--duration and --workers must be above zero")
	}
	for d.seed == 0 {
		d.seed = rand.Uint64() >> 40 // short enough to type again
	}
	d.guard, d.show = &guard{}, newScreen(stdout)
	open, err := d.prepare(ctx, stderr)
	if err != nil {
		return err
	}
	if d.nodes != nil {
		defer d.nodes.close()
	}
	d.show.line("%d workers, %d stores, %v, seed %d", d.workers, len(d.stores), d.duration, d.seed)
	if err := d.contend(ctx, open); err != nil {
		return err
	}
	return d.verdict()
}

// prepare returns what opens the stores for one worker, after it declared
// nodes of the demo's own to be new. The environment may name stores that are
// in earnest use, so the demo goes to others only when it is told to.
func (d *demo) prepare(ctx context.Context, stderr io.Writer) (func() (*quorum.Locker, error), error) {
	own := len(d.stores) == 0 && d.file == ""
	maxTTL := d.maxTTL
	if own {
		maxTTL = demoMaxTTL
		var err error
		if d.nodes, err = startNodes(demoNodes); err != nil {
			return nil, err
		}
		d.stores = d.nodes.dsns()
	}
	dsns, err := d.dsns(stderr)
	if err != nil {
		return nil, err
	}
	d.stores = dsns
	open := func() (*quorum.Locker, error) {
		store, err := openStores(ctx, dsns)
		if err != nil {
			return nil, err
		}
		return quorum.New(store, quorum.TTL(demoTTL), quorum.MaxTTL(maxTTL), quorum.Backoff(10*time.Millisecond, 100*time.Millisecond))
	}
	if !own {
		return open, nil
	}
	locker, err := open()
	if err == nil {
		err = locker.Init(ctx)
		_ = locker.Close(ctx)
	}
	if err != nil {
		d.nodes.close()
		return nil, err
	}
	return open, nil
}

// contend runs the workers, and the failures of nodes beside them, until the
// time is over.
func (d *demo) contend(ctx context.Context, open func() (*quorum.Locker, error)) error {
	ctx, cancel := context.WithTimeout(ctx, d.duration)
	defer cancel()
	ctx, d.fail = context.WithCancelCause(ctx)
	defer d.fail(nil)
	var all sync.WaitGroup
	for i := range d.workers {
		locker, err := open()
		if err != nil {
			cancel()
			all.Wait()
			return err
		}
		w := &worker{demo: d, number: i + 1, locker: locker, random: rand.New(rand.NewPCG(d.seed, uint64(i+1)))}
		all.Go(func() { w.run(ctx) })
	}
	if d.nodes != nil {
		all.Go(func() { d.nodes.fail(ctx, rand.New(rand.NewPCG(d.seed, 0)), d.show) })
	}
	all.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, quorum.ErrMismatch) {
		return cause
	}
	return nil
}

func (d *demo) verdict() error {
	r := d.guard.report()
	d.show.done()
	d.show.line("")
	failures := "none was killed"
	if d.nodes != nil {
		failures = fmt.Sprintf("%d nodes killed, %d restarted empty", d.nodes.killed, d.nodes.restarted)
	}
	d.show.line("%d acquisitions, %d attempts that found no quorum, %d locks lost; %s", r.held, r.outages, r.lost, failures)
	d.show.line("overlaps: %d", r.overlaps)
	switch {
	case r.held == 0:
		d.show.line("tokens strictly increasing: there were none")
	case r.disorder == 0:
		d.show.line("tokens strictly increasing: yes (%d tokens)", r.held)
	default:
		d.show.line("tokens strictly increasing: NO (%d of %d)", r.disorder, r.held)
	}
	switch {
	case r.overlaps > 0 || r.disorder > 0:
		return &exitError{codeFailed, fmt.Errorf("the lock failed; run it again with --seed %d, and report it", d.seed)}
	case r.held == 0:
		return &exitError{codeFailed, fmt.Errorf("nobody ever got the lock, so nothing was shown; are the stores up, and declared new with quorum init?")}
	}
	return nil
}

//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
)

// runFlags are the settings of quorum run.
type runFlags struct {
	set
	wait         time.Duration
	try          bool
	ttl          time.Duration
	margin       time.Duration
	grace        time.Duration
	label        string
	conflict     int
	failOnOutage bool
	shared       bool
	slots        int
	order        string
}

func newRun() *cobra.Command {
	r := &runFlags{set: set{next: &newSet{}}}
	cmd := &cobra.Command{
		Use:   "run [flags] KEY -- COMMAND [ARGUMENT...]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding the lock KEY, and release it when the command has ended.

The lock is renewed while the command runs. When it can no longer be, the command and all its descendants get SIGTERM
while --margin of the validity is left, and SIGKILL --grace later, so that they are gone before anybody else can have
the lock. The command runs in a process group of its own; signals are passed on to it. It finds the lock's key, its
fencing token and the end of its validity (Unix milliseconds, as of the start) in QUORUM_KEY, QUORUM_TOKEN and
QUORUM_VALID_UNTIL, and none of the other QUORUM_ variables.

` + exitHelp,
		Example: `  quorum run nightly-report -- ./report.sh
  quorum run --store redis://a --store redis://b --store redis://c --wait 1m deploy -- make deploy`,
		Args: func(cmd *cobra.Command, args []string) error {
			if dash := cmd.ArgsLenAtDash(); dash != 1 || len(args) < 2 {
				return usagef("give one key, then --, then the command: quorum run KEY -- COMMAND")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.check(cmd); err != nil {
				return err
			}
			bounded := r.try || cmd.Flags().Changed("wait")
			return r.run(cmd.Context(), bounded, args[0], args[1:], cmd.ErrOrStderr())
		},
	}
	r.set.flags(cmd)
	f := cmd.Flags()
	f.DurationVar(&r.wait, "wait", 0, "how long to wait for the lock; 0 tries once (default: as long as it takes)")
	f.BoolVar(&r.try, "try", false, "try once and do not wait, as --wait 0")
	f.DurationVar(&r.ttl, "ttl", 15*time.Second, "how long the stores keep the lock when this machine dies")
	f.DurationVar(&r.margin, "margin", 0, "stop the command when so much validity is left (default: a fifth of --ttl)")
	f.DurationVar(&r.grace, "grace", 0, "time from SIGTERM to SIGKILL when the lock is lost (default: half of --margin)")
	f.StringVar(&r.label, "label", "", "who holds the lock, for people who ask; everybody can read it")
	f.IntVarP(&r.conflict, "conflict-exit-code", "E", codeContention, "exit code when somebody else has the lock, 0 to 255")
	f.BoolVar(&r.shared, "shared", false, "hold the lock together with others that say --shared, and with nobody else")
	f.IntVar(&r.slots, "slots", 0, "how many may run at once; all clients of KEY must say the same (default: one)")
	f.StringVar(&r.order, "order", "first-then-rest", "how many stores are asked at once: "+orderNames)
	f.BoolVar(&r.failOnOutage, "fail-on-outage", false, "fail when too few stores answer, instead of waiting for them")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		for _, other := range otherNames {
			if strings.HasSuffix(err.Error(), ": "+other.flag) {
				return usagef("%v; here it is %s", err, other.ours)
			}
		}
		return cmd.Parent().FlagErrorFunc()(cmd, err)
	})
	return cmd
}

// otherNames are what flock and its like call flags of ours.
var otherNames = []struct{ flag, ours string }{
	{"--no-wait", "--try"}, {"--nowait", "--try"}, {"--nonblock", "--try"}, {"--timeout", "--wait"},
}

// check fills in the defaults that depend on other settings and refuses what
// could not keep the promise that the command is gone in time.
func (r *runFlags) check(cmd *cobra.Command) error {
	given := cmd.Flags().Changed
	if !given("margin") {
		r.margin = r.ttl / 5
	}
	if !given("grace") {
		r.grace = r.margin / 2
	}
	_, wrong := orderOf(r.order)
	switch {
	case wrong != nil:
		return usagef("--order: %v", wrong)
	case r.try && given("wait"):
		return usagef("--try and --wait exclude each other")
	case r.shared && given("slots"):
		return usagef("--shared and --slots exclude each other")
	case given("slots") && (r.slots < 1 || r.slots > 1000):
		return usagef("--slots %d: 1 to 1000", r.slots)
	case r.conflict < 0 || r.conflict > 255:
		return usagef("--conflict-exit-code %d: an exit code lies between 0 and 255", r.conflict)
	case r.wait < 0:
		return usagef("--wait %v: a wait is not negative", r.wait)
	case r.ttl <= 0 || r.ttl > r.maxTTL:
		return usagef("--ttl %v: it must lie above zero, and is at most --max-ttl %v", r.ttl, r.maxTTL)
	case r.margin > r.ttl/2:
		return usagef("--margin %v is more than half of --ttl %v: the command would be stopped before a second renewal was tried", r.margin, r.ttl)
	case r.grace < 0:
		return usagef("--grace %v: a grace is not negative", r.grace)
	case r.grace+killSlack > r.margin:
		return usagef("--grace %v and %v for the killing do not fit in --margin %v: the command could outlive its lock; "+
			"raise --margin or --ttl, or lower --grace", r.grace, killSlack, r.margin)
	}
	return nil
}

// options are those of the Locker and those of the one call.
func (r *runFlags) options(bounded bool, n *notices) (locker, call []quorum.Option) {
	order, _ := orderOf(r.order)
	locker = []quorum.Option{quorum.TTL(r.ttl), quorum.AskOrder(quorum.Order(order)), quorum.Observe(n.observe)}
	if r.label != "" {
		locker = append(locker, quorum.Label(r.label))
	}
	if r.failOnOutage {
		locker = append(locker, quorum.FailOnOutage())
	}
	if r.shared {
		call = append(call, quorum.Shared())
	}
	if bounded {
		call = append(call, quorum.Wait(r.wait))
	}
	return locker, call
}

// run takes the lock, runs the command and releases the lock. It closes the
// Locker whatever happens, so that nothing is left in the stores.
func (r *runFlags) run(ctx context.Context, bounded bool, key string, argv []string, stderr io.Writer) (err error) {
	warnUnread(os.Environ(), stderr)
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return &startError{err}
	}
	signals := catchSignals()
	n := newNotices(stderr, "")
	options, call := r.options(bounded, n)
	locker, err := r.lock(ctx, stderr, options...)
	if err != nil {
		return err
	}
	n.local = r.local
	limit := closeLimit
	defer func() { n.tellLeft(closeWithin(ctx, locker, limit)) }()
	lease, err := acquire(ctx, locker, n, signals, func(ctx context.Context) (lock, error) {
		return r.take(ctx, locker, key, call)
	})
	if err != nil {
		if errors.Is(err, quorum.ErrHeld) {
			return &exitError{r.conflict, err}
		}
		return n.explain(err)
	}
	err = r.hold(lease, path, argv, signals, stderr)
	var untold error
	if limit, untold = giveBack(ctx, lease); errors.Is(untold, quorum.ErrNoQuorum) && !errors.Is(untold, quorum.ErrLost) {
		say(stderr, "the lock could not be released at once: %s", strings.TrimPrefix(untold.Error(), "quorum: ")) // a loss is told already
	}
	return err
}

// take takes the lock, or one of its slots.
func (r *runFlags) take(ctx context.Context, locker *quorum.Locker, key string, call []quorum.Option) (lock, error) {
	if r.slots == 0 {
		return orNone(locker.Acquire(ctx, key, call...))
	}
	slots, err := locker.Slots(key, r.slots)
	if err != nil {
		return nil, err
	}
	return orNone(slots.Acquire(ctx, call...))
}

// orNone keeps a nil pointer from becoming a lock that is not nil.
func orNone[L lock](l L, err error) (lock, error) {
	if err != nil {
		return nil, err
	}
	return l, nil
}

// acquire waits for the lock until it has it, the wait is over, or a signal
// ends it. A signal that came before the command is started keeps it from
// being started: what was granted meanwhile the Locker releases as it closes.
func acquire(ctx context.Context, locker *quorum.Locker, n *notices, signals <-chan os.Signal,
	take func(context.Context) (lock, error)) (lock, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer n.done.Wait()
	defer cancel()
	n.tell(ctx, locker)
	type result struct {
		lease lock
		err   error
	}
	results := make(chan result, 1)
	go func() {
		lease, err := take(ctx)
		results <- result{lease, err}
	}()
	var interrupted os.Signal
	for {
		select {
		case sig := <-signals:
			if interrupted == nil && slices.Contains(ending, sig) {
				interrupted = sig
				cancel()
			}
		case got := <-results:
			if interrupted == nil {
				interrupted = endingAmong(signals)
			}
			if interrupted != nil {
				return nil, &exitError{codeSignal + int(interrupted.(syscall.Signal)), nil}
			}
			return got.lease, got.err
		}
	}
}

// hold runs the command inside the validity of the lease.
func (r *runFlags) hold(lease lock, path string, argv []string,
	signals chan os.Signal, stderr io.Writer) error {
	if left := lease.Remaining(); left <= r.margin {
		return &exitError{codeLost, fmt.Errorf("taking %q left only %v of validity, less than --margin %v; "+
			"the command was not started", lease.Key(), left, r.margin)}
	}
	tty := controllingTerminal()
	c, err := start(path, argv, environment(os.Environ(), lease, time.Now()), tty)
	if err != nil {
		return &startError{fmt.Errorf("%s: %w", path, err)}
	}
	s := &supervisor{
		lease: lease, job: c, signals: signals, margin: r.margin, grace: r.grace,
		warn: func(format string, args ...any) { say(stderr, format, args...) },
	}
	status, lost := s.run()
	if lost != nil {
		return &exitError{codeLost, fmt.Errorf("%q was lost while the command ran, and the command was ended (%s): %w",
			lease.Key(), describe(status), lost)}
	}
	if code := exitCode(status); code != 0 {
		return &exitError{code, nil}
	}
	return nil
}

// exitCode is a command's code as a shell gives it.
func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return codeSignal + int(status.Signal())
	}
	return status.ExitStatus()
}

func describe(status syscall.WaitStatus) string {
	if status.Signaled() {
		return "by " + status.Signal().String()
	}
	return "with code " + strconv.Itoa(status.ExitStatus())
}

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/quorumlock/quorum"
)

func newInit() *cobra.Command {
	var s set
	var w word
	var forgotten []string
	cmd := &cobra.Command{
		Use:   "init [flags]",
		Short: "Declare a new set of stores new",
		Long: `Declare a set of stores new.

A store that nobody has used looks like one that lost everything: it does not vote until --max-ttl has passed, so that a
lock that somebody may still hold is not given away. When the stores are new, nobody holds anything, and init ends that
wait. On a set that is in use and has forgotten its locks, init can let two clients hold one lock. Where members show that
the set is not new it changes nothing without --again.

With --forgotten it does the opposite to the members named: it says that they have forgotten, where nothing could notice it,
such as after a backup was restored. They then do not vote until --max-ttl has passed.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("init takes no arguments, only --store")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			return initialize(cmd.Context(), &s, w, forgotten, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.flags(cmd)
	cmd.Flags().StringSliceVar(&forgotten, "forgotten", nil, "name of a member, as status shows it, that has forgotten its locks (may be repeated)")
	cmd.Flags().BoolVar(&w.yes, "yes", false, "do not ask whether nobody holds a lock in these stores")
	cmd.Flags().BoolVar(&w.again, "again", false, "declare new also a set that was declared new before or has been in use: nobody can hold a lock in it")
	return cmd
}

// word is what the operator has said of the stores.
type word struct {
	yes   bool // nobody holds a lock in them
	again bool // also where they show that they are not new
}

func initialize(ctx context.Context, s *set, w word, forgotten []string, stdin io.Reader, stdout, stderr io.Writer) (err error) {
	store, err := s.open(ctx, stderr)
	if err != nil {
		return err
	}
	locker, err := quorum.New(store, quorum.TTL(s.maxTTL), quorum.MaxTTL(s.maxTTL))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	var names []string
	for _, m := range store.Members() {
		names = append(names, m.Name())
	}
	defer func() { err = errors.Join(err, locker.Close(context.WithoutCancel(ctx))) }()
	if len(forgotten) > 0 {
		if err := locker.Forgotten(ctx, forgotten...); err != nil {
			return err
		}
		_, err := fmt.Fprintf(stdout, "in quarantine for %v: %s\n", s.maxTTL, strings.Join(forgotten, ", "))
		return err
	}
	isNew := func() error {
		if w.again {
			return nil
		}
		used, err := locker.Used(ctx)
		return errors.Join(err, refuseUsed(used, s.maxTTL))
	}
	if err := isNew(); err != nil {
		return err
	}
	if !w.yes {
		err := confirm(stdin, stderr)
		if err == nil {
			err = isNew() // still: a person takes time
		}
		if err != nil {
			return err
		}
	}
	return declare(ctx, locker, names, stdout)
}

// refuseUsed keeps init off a set some of which remembers. What the others have
// forgotten may be a lock that is held.
func refuseUsed(used []string, maxTTL time.Duration) error {
	if len(used) == 0 {
		return nil
	}
	return usagef("nothing was changed: these members vote already, keep a record or serve another set, so that a lock may be held "+
		"that other stores have forgotten: %s; each of those votes by itself --max-ttl %v after it came back, once enough of the "+
		"others answer, or say with --again that nobody can hold a lock in them", strings.Join(used, ", "), maxTTL)
}

// declare has each store declared new by itself, so that it can say which were.
func declare(ctx context.Context, locker *quorum.Locker, names []string, stdout io.Writer) error {
	errs := make([]error, len(names))
	var all sync.WaitGroup
	for i, name := range names {
		all.Go(func() { errs[i] = locker.Init(ctx, name) })
	}
	all.Wait()
	var fresh []string
	var failed []quorum.Vote
	code := codeOutage
	for i, name := range names {
		switch err := errs[i]; {
		case err == nil:
			fresh = append(fresh, name)
		case errors.Is(err, quorum.ErrMismatch):
			code = codeMismatch
			fallthrough
		default:
			failed = append(failed, quorum.Vote{Store: name, Outcome: quorum.OutcomeOf(err), Err: err})
		}
	}
	if len(failed) == 0 {
		if err := twins(locker.Check(ctx)); err != nil {
			return &exitError{codeUsage, err}
		}
		_, err := fmt.Fprintln(stdout, "every member votes: locks are given from now on")
		return err
	}
	done := "no store was declared new"
	if len(fresh) > 0 {
		done = "these vote from now on: " + strings.Join(fresh, ", ")
	}
	return &exitError{code, fmt.Errorf("%s; these could not be declared new: %s", done, (&failures{}).text(failed))}
}

// twins says which members are one server: such a set may never lock.
func twins(check error) error {
	op := (*quorum.OpError)(nil)
	if !errors.As(check, &op) {
		return nil
	}
	var errs []error
	for _, v := range op.Votes {
		if v.Outcome == quorum.OutcomeTwin {
			errs = append(errs, fmt.Errorf("%s: %w", v.Store, v.Err))
		}
	}
	return errors.Join(errs...)
}

// confirm asks at a terminal, and refuses without one: a script says --yes.
func confirm(stdin io.Reader, stderr io.Writer) error {
	if f, ok := stdin.(*os.File); ok && !term.IsTerminal(int(f.Fd())) {
		return usagef("init has to be sure that nobody holds a lock in these stores; say so with --yes")
	}
	fmt.Fprint(stderr, "Does nobody hold a lock in these stores? Type yes: ")
	answer, err := bufio.NewReader(stdin).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(answer) != "yes" {
		return usagef("nothing was changed")
	}
	return nil
}

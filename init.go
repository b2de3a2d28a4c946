package quorum

import (
	"context"
	"errors"
	"fmt"
)

// Init declares stores new: nothing was ever held in them by this set, so the
// quarantine of those named ends now instead of after MaxTTL; without names,
// of all. Used on a store that did forget a held lock it lets a second holder
// in: ask [Locker.Used] before. Stores that vote already are left alone.
func (l *Locker) Init(ctx context.Context, stores ...string) error {
	return l.onStores(ctx, "init", stores, func(ctx context.Context, high HighWater, r Request) error {
		if high == nil {
			return nil // it never forgets, so it votes
		}
		step, err := high.ReadStep(ctx, r)
		if err != nil || step.Quarantine == "" {
			return err
		}
		return high.Raise(ctx, r, Raise{Quarantine: step.Quarantine, Step: step.Step, Fresh: true})
	})
}

// Used names the stores that show, where Init would end a quarantine, that the
// set is not new: each in quarantine that kept its record, as a server that
// restarted with its data; and each that votes while others do not, since it was
// declared new before, is new by construction, or has been in use; and each that
// serves another set, strategy or MaxTTL. It is empty where Init changes nothing.
// A store that lost everything shows nothing, and neither does one that does not
// answer within [ReleaseLimit]: the error is of a nil context alone.
func (l *Locker) Used(ctx context.Context) ([]string, error) {
	if err := given(ctx); err != nil {
		return nil, &OpError{Op: "used", reasons: []error{err}}
	}
	leaves := l.set.leaves()
	r := l.request("")
	r.Limit = l.def.releaseLimit // as Init has, or a slow store that remembers would go unheard
	answers := each(ctx, r.Limit, leaves, func(ctx context.Context, m Store) (Step, error) {
		high, keeps := As[HighWater](m)
		if !keeps {
			return Step{}, fmt.Errorf("%w: it keeps no step", ErrUnsupported)
		}
		return high.ReadStep(ctx, r)
	})
	waits := false
	var used []string
	for i, a := range answers {
		out := a.value.Quarantine != ""
		waits = waits || a.err == nil && out
		remembers := a.err == nil && (!out || a.value.Step > 0) // a record that was lost reads 0
		if remembers || OutcomeOf(a.err) == OutcomeMismatch {
			used = append(used, leaves[i].Name())
		}
	}
	if !waits {
		return nil, nil
	}
	return used, nil
}

// Forgotten is an operator's word that the stores named have forgotten what
// they acknowledged, and that nothing could notice it: a backup that was restored
// where no client remembers a later state, for example. They do not vote until
// MaxTTL has passed, and then start above the tokens that the others know, as
// any store that forgot. A store in quarantine already is left as it is; one that
// keeps no step is [ErrUnsupported].
func (l *Locker) Forgotten(ctx context.Context, stores ...string) error {
	if len(stores) == 0 {
		return fmt.Errorf("%w: Forgotten without the names of stores", ErrInvalidOption)
	}
	return l.onStores(ctx, "forgotten", stores, func(ctx context.Context, high HighWater, r Request) error {
		if high == nil {
			return fmt.Errorf("%w: it keeps no step", ErrUnsupported)
		}
		step, err := high.ReadStep(ctx, r)
		if err != nil || step.Quarantine != "" {
			return err
		}
		return high.Raise(ctx, r, Raise{Forgotten: true})
	})
}

// onStores does something to the stores named, or to all that keep a step.
func (l *Locker) onStores(ctx context.Context, op string, names []string, do func(context.Context, HighWater, Request) error) error {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	if err := given(ctx); err != nil {
		return &OpError{Op: op, reasons: []error{err}}
	}
	leaves := l.set.leaves()
	r := l.request("")
	r.Limit = l.def.releaseLimit
	answers := each(ctx, l.def.releaseLimit, leaves, func(ctx context.Context, m Store) (struct{}, error) {
		high, keeps := As[HighWater](m)
		if len(names) > 0 && !wanted[m.Name()] || len(names) == 0 && !keeps {
			return struct{}{}, nil
		}
		return struct{}{}, do(ctx, high, r)
	})
	var errs []error
	known := map[string]bool{}
	for i, m := range leaves {
		known[m.Name()] = true
		if answers[i].err != nil {
			errs = append(errs, &about{fmt.Sprintf("%s of store %q", op, m.Name()), answers[i].err})
		}
	}
	for _, name := range names {
		if !known[name] {
			errs = append(errs, fmt.Errorf("%w: %s of %q, which is none of the stores", ErrInvalidOption, op, name))
		}
	}
	return errors.Join(errs...)
}

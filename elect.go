package quorum

import (
	"context"
	"errors"
	"sync"
)

// OnNewLeader gives the label of the leader to fn whenever it is another than
// before, as far as this candidate sees; also its own when it begins to lead. It
// is an option of [Locker.Elect] and does nothing elsewhere. Calls never overlap
// each other or a term of this candidate's own.
func OnNewLeader(fn func(label string)) Option {
	return Option{"OnNewLeader", true, func(s *settings) { s.onLeader = fn }}
}

// Elect stands for leadership of key until ctx ends, and calls fn for each term:
// only while this candidate leads, with a context that ends when it does not any
// more, or with ctx. A term ends before the next begins: the lock is given back,
// or known to be lost, only after fn returned. When fn returns while it leads,
// Elect gives the lock back and returns fn's error; after a loss it stands again.
// It returns ctx's error when ctx ended, joined with what the term came to. Options and the other errors are those of [Locker.Acquire].
func (l *Locker) Elect(ctx context.Context, key string, fn func(context.Context, *Lease) error, options ...Option) error {
	if err := given(ctx); err != nil {
		return &OpError{Op: "acquire", Key: key, Need: l.set.rule.Need(), reasons: []error{err}}
	}
	e := &election{}
	candidate := Option{"Elect", true, func(s *settings) {
		if tell := s.onLeader; tell != nil {
			s.rival = func(label string) { e.rival(tell, label) }
		}
	}}
	options = append(options[:len(options):len(options)], candidate)
	for {
		e.begin(false)
		err := l.Do(ctx, key, func(ctx context.Context, lease *Lease) error {
			e.begin(true)
			e.see(lease.set.onLeader, l.label(lease.set.label))
			return fn(ctx, lease)
		}, options...)
		switch over := ctx.Err(); {
		case over != nil && !errors.Is(err, over):
			return errors.Join(over, err)
		case over != nil || !errors.Is(err, ErrLost):
			return err
		}
	}
}

// election serializes what one candidate is told.
type election struct {
	mu      sync.Mutex
	leads   bool
	current string
}

func (e *election) begin(leads bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.leads = leads
}

// rival hears who refused an attempt. Late news of a rival, when this candidate
// leads already, are none.
func (e *election) rival(fn func(string), label string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.leads && label != "" && label != e.current {
		e.current = label
		fn(label)
	}
}

func (e *election) see(fn func(string), label string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.current = label; fn != nil {
		fn(label)
	}
}

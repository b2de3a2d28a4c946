package storetest

import (
	"context"

	"github.com/quorumlock/quorum"
)

// Unwrap leads to the spoiled abilities of the store beneath, and from there
// to the store itself. A Spoiled has none of its own, because one that the
// store beneath lacks must not be found.
func (s *Spoiled) Unwrap() quorum.Store {
	chain := s.beneath()
	if _, ok := quorum.As[quorum.Inspector](chain); ok {
		chain = &inspector{link{s, chain}}
	}
	if _, ok := quorum.As[quorum.HighWater](chain); ok {
		chain = &highWater{link{s, chain}}
	}
	if _, ok := quorum.As[quorum.Membership](chain); ok {
		chain = &membership{link{s, chain}}
	}
	if _, ok := quorum.As[quorum.Watcher](chain); ok {
		chain = &watcher{link{s, chain}}
	}
	return chain
}

// link is a store of the chain: spoiled itself, leading on to the next.
type link struct {
	*Spoiled
	next quorum.Store
}

func (l link) Unwrap() quorum.Store { return l.next }

type inspector struct{ link }

func (i *inspector) Inspect(ctx context.Context, r quorum.Request) (quorum.State, error) {
	return through(ctx, i.Spoiled, VerbInspect, r, func(ctx context.Context) (quorum.State, error) {
		under, ok := quorum.As[quorum.Inspector](i.beneath())
		if !ok {
			return quorum.State{}, quorum.Undelivered(quorum.ErrUnsupported)
		}
		return under.Inspect(ctx, r)
	})
}

type highWater struct{ link }

func (h *highWater) ReadStep(ctx context.Context, r quorum.Request) (quorum.Step, error) {
	return through(ctx, h.Spoiled, VerbReadStep, r, func(ctx context.Context) (quorum.Step, error) {
		under, ok := quorum.As[quorum.HighWater](h.beneath())
		if !ok {
			return quorum.Step{}, quorum.Undelivered(quorum.ErrUnsupported)
		}
		return under.ReadStep(ctx, r)
	})
}

func (h *highWater) Raise(ctx context.Context, r quorum.Request, o quorum.Raise) error {
	_, err := through(ctx, h.Spoiled, VerbRaise, r, func(ctx context.Context) (struct{}, error) {
		under, ok := quorum.As[quorum.HighWater](h.beneath())
		if !ok {
			return struct{}{}, quorum.Undelivered(quorum.ErrUnsupported)
		}
		return struct{}{}, under.Raise(ctx, r, o)
	})
	return err
}

type membership struct{ link }

func (m *membership) Serves(ctx context.Context, r quorum.Request) ([]quorum.Fingerprint, error) {
	return through(ctx, m.Spoiled, VerbServes, r, func(ctx context.Context) ([]quorum.Fingerprint, error) {
		under, ok := quorum.As[quorum.Membership](m.beneath())
		if !ok {
			return nil, quorum.Undelivered(quorum.ErrUnsupported)
		}
		return under.Serves(ctx, r)
	})
}

func (m *membership) Serve(ctx context.Context, r quorum.Request, from, to []quorum.Fingerprint) error {
	_, err := through(ctx, m.Spoiled, VerbServe, r, func(ctx context.Context) (struct{}, error) {
		under, ok := quorum.As[quorum.Membership](m.beneath())
		if !ok {
			return struct{}{}, quorum.Undelivered(quorum.ErrUnsupported)
		}
		return struct{}{}, under.Serve(ctx, r, from, to)
	})
	return err
}

type watcher struct{ link }

// Watch lasts as long as its context, also where a fault would have the request
// outlive the call: only its beginning is spoiled.
func (w *watcher) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	_, err := through(ctx, w.Spoiled, VerbWatch, r, func(context.Context) (struct{}, error) {
		under, ok := quorum.As[quorum.Watcher](w.beneath())
		if !ok {
			return struct{}{}, quorum.Undelivered(quorum.ErrUnsupported)
		}
		return struct{}{}, under.Watch(ctx, r, tell)
	})
	return err
}

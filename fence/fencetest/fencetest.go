// Package fencetest checks a guard of one's own against what [fence.Guard]
// promises.
package fencetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/quorumlock/quorum/fence"
)

// Run checks guards: fresh returns one that has seen nothing of any name that
// begins with the given prefix.
func Run(t *testing.T, fresh func(t *testing.T, prefix string) fence.Guard) {
	for i, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			prefix := fmt.Sprintf("fencetest-%d-", i)
			c.run(t, fresh(t, prefix), prefix+"name")
		})
	}
}

// reporter is what a check needs of a *testing.T.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Context() context.Context
}

var checks = []struct {
	name string
	run  func(t reporter, g fence.Guard, name string)
}{
	{"stale token refused", func(t reporter, g fence.Guard, name string) {
		admit(t, g, name, 7, nil)
		admit(t, g, name, 6, fence.ErrStale)
		admit(t, g, name, 1, fence.ErrStale)
	}},
	{"second write of the holder accepted", func(t reporter, g fence.Guard, name string) {
		admit(t, g, name, 7, nil)
		admit(t, g, name, 7, nil)
	}},
	{"later token accepted", func(t reporter, g fence.Guard, name string) {
		admit(t, g, name, 7, nil)
		admit(t, g, name, 8, nil)
		admit(t, g, name, 7, fence.ErrStale)
	}},
	{"refusal changes nothing", func(t reporter, g fence.Guard, name string) {
		admit(t, g, name, 7, nil)
		admit(t, g, name, 3, fence.ErrStale)
		admit(t, g, name, 5, fence.ErrStale)
		admit(t, g, name, 7, nil)
	}},
	{"names are apart", func(t reporter, g fence.Guard, name string) {
		admit(t, g, name, 9, nil)
		admit(t, g, name+"'; --", 2, nil)
		admit(t, g, name, 8, fence.ErrStale)
	}},
	{"numbers, not texts", func(t reporter, g fence.Guard, name string) {
		admit(t, g, name, 9, nil)
		admit(t, g, name, 10, nil)
		admit(t, g, name, 9, fence.ErrStale)
	}},
	{"largest tokens", func(t reporter, g fence.Guard, name string) {
		const most = 1<<53 - 1
		admit(t, g, name, most-1, nil)
		admit(t, g, name, most, nil)
		admit(t, g, name, most-1, fence.ErrStale)
	}},
	{"no token", noToken},
	{"ended context", func(t reporter, g fence.Guard, name string) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.Admit(ctx, name, 9); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("with an ended context: %v, want its error", err)
		}
		admit(t, g, name, 1, nil)
	}},
	{"concurrent writers", concurrent},
}

func admit(t reporter, g fence.Guard, name string, token int64, want error) {
	t.Helper()
	err := g.Admit(t.Context(), name, token)
	if !errors.Is(err, want) || (err == nil) != (want == nil) {
		t.Errorf("token %d for %q: %v, want %v", token, name, err, want)
	}
}

func noToken(t reporter, g fence.Guard, name string) {
	for _, token := range []int64{0, -1} {
		if err := g.Admit(t.Context(), name, token); err == nil || errors.Is(err, fence.ErrStale) {
			t.Errorf("%d is no token: %v", token, err)
		}
	}
}

// concurrent has writers race: whoever is admitted is not below any that was
// admitted before it asked.
func concurrent(t reporter, g fence.Guard, name string) {
	var mu sync.Mutex
	var highest int64
	var wg sync.WaitGroup
	for token := int64(1); token <= 20; token++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			mu.Lock()
			before := highest
			mu.Unlock()
			err := g.Admit(t.Context(), name, token)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && token < before:
				t.Errorf("%d was admitted after %d", token, before)
			case err == nil:
				highest = max(highest, token)
			case !errors.Is(err, fence.ErrStale):
				t.Errorf("token %d: %v", token, err)
			}
		}()
	}
	wg.Wait()
	if highest != 20 {
		t.Errorf("the highest admitted is %d, want 20", highest)
	}
	if err := g.Admit(t.Context(), name, 19); !errors.Is(err, fence.ErrStale) {
		t.Errorf("after 20, 19: %v", err)
	}
}

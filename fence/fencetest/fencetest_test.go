package fencetest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/quorumlock/quorum/fence"
)

// Each broken guard is failed by the check named for what it breaks.
func TestBrokenGuardsFail(t *testing.T) {
	type step = func(seen, token int64) (now int64, admitted bool)
	for name, guard := range map[string]*broken{
		"stale token refused":                 {step: func(_, token int64) (int64, bool) { return token, true }},
		"second write of the holder accepted": {step: func(seen, token int64) (int64, bool) { return max(seen, token), token > seen }},
		"later token accepted":                {step: func(seen, token int64) (int64, bool) { return max(seen, 7), token <= 7 && token >= seen }},
		"refusal changes nothing":             {step: func(seen, token int64) (int64, bool) { return token, token >= seen }},
		"names are apart":                     {oneName: true},
		"numbers, not texts": {step: func(seen, token int64) (int64, bool) {
			if seen == 0 || strconv.FormatInt(token, 10) >= strconv.FormatInt(seen, 10) {
				return token, true
			}
			return seen, false
		}},
		"largest tokens": {step: func(seen, token int64) (int64, bool) { return max(seen, token), float32(token) >= float32(seen) }},
		"no token":       {anyToken: true},
		"ended context":  {deaf: true},
	} {
		i := slices.IndexFunc(checks, func(c struct {
			name string
			run  func(t reporter, g fence.Guard, name string)
		}) bool {
			return c.name == name
		})
		r := &record{ctx: t.Context()}
		if guard.step == nil {
			guard.step = step(func(seen, token int64) (int64, bool) { return max(seen, token), token >= seen })
		}
		checks[i].run(r, guard, "name")
		if len(r.said) == 0 {
			t.Errorf("%s: the guard that breaks it passes", name)
		}
	}
}

type record struct {
	ctx  context.Context
	said []string
}

func (r *record) Helper() {}
func (r *record) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}
func (r *record) Context() context.Context { return r.ctx }

type broken struct {
	step                    func(seen, token int64) (int64, bool)
	oneName, anyToken, deaf bool

	mu   sync.Mutex
	seen map[string]int64
}

func (b *broken) Admit(ctx context.Context, name string, token int64) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case token < 1 && !b.anyToken:
		return fmt.Errorf("%d is no token", token)
	case ctx.Err() != nil && !b.deaf:
		return ctx.Err()
	case b.oneName:
		name = ""
	}
	if b.seen == nil {
		b.seen = map[string]int64{}
	}
	now, admitted := b.step(b.seen[name], token)
	b.seen[name] = now
	if !admitted {
		return &fence.StaleError{Name: name, Token: token, Seen: b.seen[name]}
	}
	return nil
}

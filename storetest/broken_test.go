package storetest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// flawed is a MapStore with one verb spoiled; a nil verb is the MapStore's.
type flawed struct {
	*MapStore
	acquire func(context.Context, quorum.Request) (quorum.Grant, error)
	extend  func(context.Context, quorum.Request) (quorum.Grant, error)
	release func(context.Context, quorum.Request) error
}

func (f *flawed) Acquire(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if f.acquire != nil {
		return f.acquire(ctx, r)
	}
	return f.MapStore.Acquire(ctx, r)
}

func (f *flawed) Extend(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
	if f.extend != nil {
		return f.extend(ctx, r)
	}
	return f.MapStore.Extend(ctx, r)
}

func (f *flawed) Release(ctx context.Context, r quorum.Request) error {
	if f.release != nil {
		return f.release(ctx, r)
	}
	return f.MapStore.Release(ctx, r)
}

// edit gives a flaw the name as the store has it before the verb.
func (f *flawed) edit(r quorum.Request, change func(n *name)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.names[r.Key]; n != nil {
		change(n)
	}
}

// broken lists stores with one mistake each, of the kind that field reports
// tell of, and the check that must fail them.
var broken = []struct {
	name, check string
	spoil       func(f *flawed)
}{
	{"votes never end", "expiry/expired name is free", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			r.TTL *= 1000
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"votes end early", "expiry/not before its time", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			asked := r.TTL
			r.TTL = asked * 8 / 10
			g, err := f.MapStore.Acquire(ctx, r)
			g.TTL = asked
			return g, err
		}
	}},
	{"extend shortens", "extend/never shortens", func(f *flawed) {
		f.extend = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			f.edit(r, func(n *name) {
				if n.owner == r.Owner && f.Now().Before(n.until) {
					n.until = f.Now().Add(1)
				}
			})
			return f.MapStore.Extend(ctx, r)
		}
	}},
	{"extend does not look at the owner", "extend/stranger is not held", func(f *flawed) {
		f.extend = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			f.edit(r, func(n *name) { r.Owner = n.owner })
			return f.MapStore.Extend(ctx, r)
		}
	}},
	{"extend looks at the owner only", "extend/only exactly this attempt", func(f *flawed) {
		f.extend = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			f.edit(r, func(n *name) {
				if n.owner.ID == r.Owner.ID {
					r.Owner = n.owner
				}
			})
			return f.MapStore.Extend(ctx, r)
		}
	}},
	{"extend revives", "extend/expired vote is none, even if nobody took it", func(f *flawed) {
		f.extend = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			f.edit(r, func(n *name) {
				if n.owner == r.Owner {
					n.until = f.Now().Add(r.TTL)
				}
			})
			return f.MapStore.Extend(ctx, r)
		}
	}},
	{"extend forgets the floor", "extend/floor raises token and counter", func(f *flawed) {
		f.extend = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			floor := r.Floor
			r.Floor = 0
			g, err := f.MapStore.Extend(ctx, r)
			g.Token = max(g.Token, floor)
			return g, err
		}
	}},
	{"acquire forgets the floor", "token/acquire takes a floor above the counter", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			if r.Kind == quorum.KindNew {
				r.Floor = 0
			}
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"release by anybody", "release/stranger removes nothing", func(f *flawed) {
		f.release = func(ctx context.Context, r quorum.Request) error {
			f.edit(r, func(n *name) { r.Owner = n.owner })
			return f.MapStore.Release(ctx, r)
		}
	}},
	{"release of every attempt", "attempt/late release of attempt 1 leaves attempt 2", func(f *flawed) {
		f.release = func(ctx context.Context, r quorum.Request) error {
			r.Owner.Attempt = 1<<32 - 1
			return f.MapStore.Release(ctx, r)
		}
	}},
	{"release takes the counter along", "token/survives release", func(f *flawed) {
		f.release = func(ctx context.Context, r quorum.Request) error {
			err := f.MapStore.Release(ctx, r)
			f.edit(r, func(n *name) { n.counter = 0 })
			return err
		}
	}},
	{"release of nothing succeeds", "release/nothing to remove is not held", func(f *flawed) {
		f.release = func(ctx context.Context, r quorum.Request) error {
			if err := f.MapStore.Release(ctx, r); err != nil && !errors.Is(err, quorum.ErrNotHeld) {
				return err
			}
			return nil
		}
	}},
	{"no tombstones", "entomb/late acquire is refused", func(f *flawed) {
		f.release = func(ctx context.Context, r quorum.Request) error {
			r.Entomb = false
			return f.MapStore.Release(ctx, r)
		}
	}},
	{"same attempt is a new vote", "attempt/same attempt again is the same vote", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			f.edit(r, func(n *name) {
				if n.owner == r.Owner {
					n.owner.Attempt--
				}
			})
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"older attempt replaces younger", "attempt/older is refused", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			f.edit(r, func(n *name) {
				if n.owner.ID == r.Owner.ID {
					n.owner.Attempt = min(n.owner.Attempt, r.Owner.Attempt)
				}
			})
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"repair counts on", "repair/takes the token without increment", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			if r.Kind == quorum.KindRepair {
				r.Kind, r.Floor = quorum.KindNew, r.Floor+1
			}
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"repair below the counter", "repair/below the counter is refused", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			if r.Kind == quorum.KindRepair {
				f.edit(r, func(n *name) { n.counter = min(n.counter, r.Floor) })
			}
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"names are folded", "key/alike names do not meet", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			r.Key = strings.ToLower(r.Key)
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"names are cut", "key/500 common bytes", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			r.Key = r.Key[:min(len(r.Key), 500)]
			return f.MapStore.Acquire(ctx, r)
		}
	}},
	{"contention is any error", "acquire/second owner is refused", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			g, err := f.MapStore.Acquire(ctx, r)
			if errors.Is(err, quorum.ErrHeld) {
				err = errors.New("lock exists")
			}
			return g, err
		}
	}},
	{"errors show the owner", "secret/no error shows the owner", func(f *flawed) {
		f.extend = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			g, err := f.MapStore.Extend(ctx, r)
			if errors.Is(err, quorum.ErrNotHeld) {
				err = &quorum.RefusedError{Outcome: quorum.OutcomeNotHeld, Reason: "not " + r.Owner.Hex()}
			}
			return g, err
		}
	}},
	{"context is ignored", "context/cancelled one does nothing", func(f *flawed) {
		f.acquire = func(_ context.Context, r quorum.Request) (quorum.Grant, error) {
			return f.MapStore.Acquire(context.Background(), r)
		}
	}},
	{"set is ignored", "request/other set is a mismatch", func(f *flawed) {
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			r.Set = 1
			return f.MapStore.Acquire(ctx, r)
		}
		f.extend = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			r.Set = 1
			return f.MapStore.Extend(ctx, r)
		}
		f.release = func(ctx context.Context, r quorum.Request) error {
			r.Set = 1
			return f.MapStore.Release(ctx, r)
		}
	}},
	{"looks first and takes later", "concurrent/one winner of 32", func(f *flawed) {
		// The first to look waits until a second has looked, as happens now
		// and then to a store that does not lock.
		var looks atomic.Int32
		second := make(chan struct{})
		f.acquire = func(ctx context.Context, r quorum.Request) (quorum.Grant, error) {
			free := true
			f.edit(r, func(n *name) { free = n.owner == quorum.Owner{} })
			if free && strings.Contains(r.Key, "one winner") {
				if looks.Add(1) == 2 {
					close(second)
				}
				<-second
				r.Kind = quorum.KindForce
			}
			return f.MapStore.Acquire(ctx, r)
		}
	}},
}

// TestR56BrokenStoresFail runs each broken store against the check named for
// its mistake, and the sound one against the same check.
func TestR56BrokenStoresFail(t *testing.T) {
	if len(broken) < 12 {
		t.Errorf("%d broken stores, want at least 12", len(broken))
	}
	for _, b := range broken {
		t.Run(b.name, func(t *testing.T) {
			factory := func(spoil func(*flawed)) storetest.Factory {
				return manual(func(s *MapStore) quorum.Store {
					f := &flawed{MapStore: s}
					spoil(f)
					return f
				})
			}
			if failures, _ := storetest.Examine(t, factory(func(*flawed) {}), b.check); len(failures) > 0 {
				t.Fatalf("the sound store fails %q: %q", b.check, failures)
			}
			failures, skipped := storetest.Examine(t, factory(b.spoil), b.check)
			if len(failures) == 0 {
				t.Fatalf("the check %q passes a store of which %s (skipped: %q)", b.check, b.name, skipped)
			}
			if !strings.HasPrefix(failures[0], "check_") {
				t.Errorf("the check fails before it begins: %s", failures[0])
			}
			t.Log(failures[0])
		})
	}
}

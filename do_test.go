package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// panicsHere is a line to be found in a stack.
func panicsHere(v any) { panic(v) }

func TestF146PanicGoesOnWithItsStack(t *testing.T) {
	// R53.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		type value struct{ n int }
		func() {
			defer func() {
				if p := recover(); p != (value{7}) {
					t.Errorf("recovered %v, want the value that fn panicked with", p)
				}
				if stack := string(debug.Stack()); !strings.Contains(stack, "panicsHere") {
					t.Errorf("the stack does not lead to where fn panicked:\n%s", stack)
				}
				b.checkEmpty("k") // released before the panic went on
			}()
			_ = l.Do(t.Context(), "k", func(context.Context, *quorum.Lease) error {
				if b.held("k") < 2 {
					t.Error("fn runs without the lock")
				}
				panicsHere(value{7})
				return nil
			})
		}()
		b.settle()
		b.checkEmpty("k")
	})
	t.Run("Goexit", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			l := b.locker()
			done, after := make(chan struct{}), false
			go func() {
				defer close(done)
				_ = l.Do(t.Context(), "k", func(context.Context, *quorum.Lease) error {
					runtime.Goexit()
					return nil
				})
				after = true
			}()
			<-done
			if after {
				t.Error("Do returned although fn ended its goroutine")
			}
			b.checkEmpty("k")
		})
	})
}

func TestF031DoNeverRunsWithoutALock(t *testing.T) {
	// R72.
	for name, answer := range map[string]error{
		"auth error": errors.New("NOAUTH Authentication required."), "MOVED": errors.New("MOVED 3999 127.0.0.1:6381"),
		"connection reset": errors.New("read: connection reset by peer"), "read-only": errors.New("READONLY You can't write against a read only replica."),
		"malformed reply": errors.New("redis: can't parse reply"), "panic": nil,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				b.spoilAll(storetest.VerbAcquire, storetest.Fail(answer))
				if answer == nil {
					b.spoilAll(storetest.VerbAcquire, storetest.Panic("ouch"))
				}
				calls := 0
				err := b.locker().Do(t.Context(), "k", func(context.Context, *quorum.Lease) error { calls++; return nil }, quorum.Wait(time.Second))
				if calls != 0 || !errors.Is(err, quorum.ErrNoQuorum) || errors.Is(err, quorum.ErrHeld) || answer != nil && !errors.Is(err, answer) {
					t.Errorf("fn ran %d times, and Do says %v", calls, err)
				}
			})
		})
	}
}

func TestF032EndOfTheWaitRunsNothing(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		must(t, l, "k")
		start, calls := time.Now(), 0
		err := l.Do(t.Context(), "k", func(context.Context, *quorum.Lease) error { calls++; return nil }, quorum.Wait(2*time.Second))
		within(t, "Do", since(start), 2*time.Second, 2300*time.Millisecond)
		if calls != 0 || overlap(err) != "ErrHeld DeadlineExceeded" {
			t.Errorf("fn ran %d times, and Do says %v", calls, err)
		}
	})
}

func TestF145ErrorsOfDoAreJoined(t *testing.T) {
	errA, errB := errors.New("A"), errors.New("B")
	for _, tc := range []struct {
		name            string
		fn, release     error
		lose            bool
		a, b, lost, nul bool
	}{
		{"both", errA, errB, false, true, true, false, false},
		{"only the release", nil, errB, false, false, true, false, false},
		{"only fn", errA, nil, false, true, false, false, false},
		{"none", nil, nil, false, false, false, false, true},
		{"lost meanwhile", nil, nil, true, false, false, true, false},
		{"lost meanwhile, and fn", errA, nil, true, true, false, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				err := b.locker().Do(t.Context(), "k", func(ctx context.Context, _ *quorum.Lease) error {
					if tc.release != nil {
						b.spoilAll(storetest.VerbRelease, storetest.Fail(tc.release))
					}
					if tc.lose {
						b.spoilAll(storetest.VerbExtend, storetest.Fail(nil))
						<-ctx.Done()
						if lost := (*quorum.LostError)(nil); !errors.As(context.Cause(ctx), &lost) {
							t.Errorf("the context of fn ended because of %v, want a LostError", context.Cause(ctx))
						}
					}
					return tc.fn
				})
				if errors.Is(err, errA) != tc.a || errors.Is(err, errB) != tc.b || errors.Is(err, quorum.ErrLost) != tc.lost || (err == nil) != tc.nul {
					t.Errorf("Do = %v", err)
				}
			})
		})
	}
}

func TestR53FnThatIgnoresItsContext(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		err := b.locker().Do(ctx, "k", func(inner context.Context, lease *quorum.Lease) error {
			time.Sleep(30 * time.Second)
			if !errors.Is(inner.Err(), context.Canceled) || !errors.Is(context.Cause(inner), context.DeadlineExceeded) {
				t.Errorf("the context of fn says %v because of %v, want the caller's deadline", inner.Err(), context.Cause(inner))
			}
			if b.held("k") != 3 || lease.Err() != nil {
				t.Errorf("fn still runs, and %d stores hold its lock; %v", b.held("k"), lease.Err())
			}
			return nil
		})
		if err != nil {
			t.Errorf("Do = %v", err)
		}
		within(t, "Do", since(start), 30*time.Second, 30*time.Second)
		b.checkEmpty("k")
	})
}

func TestDoEndsTheContextWithTheCaller(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		why := errors.New("the user went away")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(why) })
		err := l.Do(ctx, "k", func(ctx context.Context, _ *quorum.Lease) error {
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if !errors.Is(err, why) {
			t.Errorf("Do = %v, want the cause of the caller's cancel", err)
		}
		b.checkEmpty("k") // Release works with an ended context
	})
}

func TestR72Held(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l, other := b.locker(), b.locker(quorum.TTL(2*time.Second))
		want := func(ctx context.Context, key, matches string) {
			t.Helper()
			if err := quorum.Held(ctx, key); (err == nil) != (matches == "") || err != nil && overlap(err) != matches {
				t.Errorf("Held(%q) = %v, want %q", key, err, matches)
			}
		}
		want(t.Context(), "outer", "ErrNotHeld")
		outer := must(t, l, "outer")
		ctx := context.WithValue(outer.Context(), struct{ int }{1}, "more")
		want(ctx, "outer", "")
		want(ctx, "inner", "ErrNotHeld")
		err := other.Do(ctx, "inner", func(ctx context.Context, lease *quorum.Lease) error {
			want(ctx, "inner", "")
			want(ctx, "outer", "")
			want(ctx, "inn", "ErrNotHeld")
			b.spoilAll(storetest.VerbExtend, storetest.Fail(nil))
			<-lease.Context().Done()
			want(ctx, "inner", "ErrLost")
			want(ctx, "outer", "") // its TTL is longer
			healed(b)
			if err := outer.Release(ctx); err != nil {
				t.Error(err)
			}
			want(ctx, "outer", "ErrReleased")
			return fmt.Errorf("stopped: %w", quorum.Held(ctx, "inner"))
		})
		if !errors.Is(err, quorum.ErrLost) {
			t.Errorf("Do = %v, want ErrLost", err)
		}
		want(outer.Context(), "outer", "ErrReleased")
		if n := b.calls(storetest.VerbAcquire); n > 6 {
			t.Errorf("%d calls: Held asked the stores", n)
		}
	})
}

func TestF110NestedAcquireIsAnotherHolder(t *testing.T) {
	// R08: every Acquire is its own holder, also within one process.
	inBubble(t, 3, func(t *testing.T, b *bed) {
		err := b.locker().Do(t.Context(), "k", func(ctx context.Context, lease *quorum.Lease) error {
			wait, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			start := time.Now()
			again, err := b.locker().Acquire(wait, "k")
			within(t, "the nested Acquire", since(start), 10*time.Second, 10050*time.Millisecond)
			if again != nil || overlap(err) != "ErrHeld DeadlineExceeded" {
				t.Errorf("the nested Acquire = %v, %v, want ErrHeld and the context's error", again, err)
			}
			return lease.Err()
		})
		if err != nil {
			t.Errorf("the outer lease was disturbed: %v", err)
		}
	})
}

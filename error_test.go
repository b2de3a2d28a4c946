package quorum_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

var update = flag.Bool("update", false, "write the files of testdata anew")

// spoilAll gives every store the same faults for the verbs.
func (b *bed) spoilAll(verb storetest.Verb, faults ...storetest.Fault) {
	for _, sp := range b.spoil {
		sp.Set(storetest.On(storetest.Verbs(verb), faults...))
	}
}

// fakes are the ways in which a store can answer an Acquire.
var fakes = map[string][]storetest.Fault{
	"granted":         nil,
	"error":           {storetest.Fail(nil)},
	"never sent":      {storetest.Fail(quorum.Undelivered(errors.New("dial tcp: connection refused")))},
	"contended":       {storetest.Fail(&quorum.RefusedError{Outcome: quorum.OutcomeContended, Clean: true})},
	"not clean":       {storetest.Fail(&quorum.RefusedError{Outcome: quorum.OutcomeContended})},
	"quarantined":     {storetest.Fail(&quorum.RefusedError{Outcome: quorum.OutcomeQuarantined, Left: time.Second})},
	"mismatch":        {storetest.Fail(mismatch)},
	"ready":           {storetest.Fail(&quorum.RefusedError{Outcome: quorum.OutcomeReady})},
	"not asked":       {storetest.Fail(&quorum.RefusedError{})},
	"granted refusal": {storetest.Fail(&quorum.RefusedError{Outcome: quorum.OutcomeGranted})},
	"plain ErrHeld":   {storetest.Fail(quorum.ErrHeld)},
	"plain ErrLost":   {storetest.Fail(quorum.ErrLost)},
	"lost reply":      {storetest.DropReply(nil)},
	"hang":            {storetest.Hang()},
	"ignore ctx":      {storetest.Freeze()},
	"late":            {storetest.LateReply(3 * time.Second)},
	"applied late":    {storetest.LateApply(50*time.Millisecond, nil)},
	"doubled":         {storetest.Double(time.Millisecond)},
	"panic":           {storetest.Panic("ouch")},
}

func TestR04ExactlyOneOfLeaseAndErrorIsNil(t *testing.T) {
	for name, faults := range fakes {
		for _, n := range []int{1, 3} {
			for _, cancelled := range []bool{false, true} {
				inBubble(t, n, func(t *testing.T, b *bed) {
					if faults != nil {
						b.spoilAll(storetest.VerbAcquire, faults...)
					}
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					if cancelled {
						cancel()
					}
					l := b.locker(quorum.TTL(2 * time.Second))
					for _, acquire := range []func() (*quorum.Lease, error){
						func() (*quorum.Lease, error) { return l.TryAcquire(ctx, "k") },
						func() (*quorum.Lease, error) { return l.Acquire(ctx, "k") },
						func() (*quorum.Lease, error) { return l.Acquire(ctx, "k", quorum.FailOnOutage()) },
						func() (*quorum.Lease, error) { return l.Acquire(ctx, "k", quorum.Wait(20*time.Millisecond)) },
					} {
						lease, err := acquire()
						if (lease == nil) == (err == nil) {
							t.Fatalf("%s, %d stores: %v, %v", name, n, lease, err)
						}
						if wins := name == "granted" || name == "doubled"; !cancelled && wins != (err == nil) {
							t.Errorf("%s, %d stores: %v, %v", name, n, lease, err)
						}
						if lease != nil && (lease.Token() < 1 || lease.Err() != nil || lease.Release(ctx) != nil) {
							t.Errorf("%s, %d stores: token %d, %v", name, n, lease.Token(), lease.Err())
						}
					}
				})
			}
		}
	}
}

// mute grants without a token, as a store does that is not finished.
type mute struct{ *memstore.Store }

func (m mute) Acquire(context.Context, quorum.Request) (quorum.Grant, error) {
	return quorum.Grant{}, nil
}

func TestF100GrantWithoutATokenIsNoVote(t *testing.T) {
	l, err := quorum.New(mute{memstore.New("mute")})
	if err != nil {
		t.Fatal(err)
	}
	lease, err := l.TryAcquire(t.Context(), "k")
	if lease != nil || !errors.Is(err, quorum.ErrNoQuorum) || !strings.Contains(err.Error(), "without a token") {
		t.Errorf("%v, %v, want ErrNoQuorum that says why", lease, err)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// overlap lists which of these an error matches.
func overlap(err error) string {
	var out []string
	for _, s := range []struct {
		name string
		err  error
	}{
		{"ErrHeld", quorum.ErrHeld}, {"ErrNoQuorum", quorum.ErrNoQuorum}, {"ErrExpired", quorum.ErrExpired},
		{"ErrMismatch", quorum.ErrMismatch}, {"ErrLost", quorum.ErrLost}, {"ErrReleased", quorum.ErrReleased},
		{"ErrNotHeld", quorum.ErrNotHeld}, {"ErrClosed", quorum.ErrClosed}, {"ErrInvalidKey", quorum.ErrInvalidKey},
		{"ErrInvalidTTL", quorum.ErrInvalidTTL}, {"Canceled", context.Canceled}, {"DeadlineExceeded", context.DeadlineExceeded},
	} {
		if errors.Is(err, s.err) {
			out = append(out, s.name)
		}
	}
	return strings.Join(out, " ")
}

func TestF128EachSituationHasItsOwnError(t *testing.T) {
	held := func(t *testing.T, b *bed) { b.rival("k", 30*time.Second, 0, 1, 2) }
	down := func(_ *testing.T, b *bed) { b.spoilAll(storetest.VerbAcquire, storetest.Fail(nil)) }
	cancelled := func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Second, cancel)
		return ctx, cancel
	}
	timed := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Second)
	}
	for _, tc := range []struct {
		name    string
		spoil   func(*testing.T, *bed)
		ctx     func(context.Context) (context.Context, context.CancelFunc)
		options []quorum.Option
		want    string
	}{
		{"held, one attempt", held, context.WithCancel, []quorum.Option{quorum.Wait(0)}, "ErrHeld"},
		{"held, cancelled", held, cancelled, nil, "ErrHeld Canceled"},
		{"held, the context's time is over", held, timed, nil, "ErrHeld DeadlineExceeded"},
		{"held, the wait's limit is reached", held, context.WithCancel, []quorum.Option{quorum.Wait(time.Second)}, "ErrHeld DeadlineExceeded"},
		{"R81 down, one attempt", down, context.WithCancel, []quorum.Option{quorum.Wait(0)}, "ErrNoQuorum"},
		{"R81 down, FailOnOutage", down, context.WithCancel, []quorum.Option{quorum.FailOnOutage()}, "ErrNoQuorum"},
		{"down, cancelled", down, cancelled, nil, "ErrNoQuorum Canceled"},
		{"down, the wait's limit is reached", down, context.WithCancel, []quorum.Option{quorum.Wait(time.Second)}, "ErrNoQuorum DeadlineExceeded"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, 3, func(t *testing.T, b *bed) {
				tc.spoil(t, b)
				ctx, cancel := tc.ctx(t.Context())
				defer cancel()
				_, err := b.locker().Acquire(ctx, "k", tc.options...)
				if got := overlap(err); got != tc.want {
					t.Errorf("%v matches %q, want %q", err, got, tc.want)
				}
			})
		})
	}
}

func TestF164OutageIsNotContention(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker()
		try := func(want string) {
			t.Helper()
			if _, err := l.TryAcquire(t.Context(), "k"); overlap(err) != want {
				t.Errorf("%v matches %q, want %q", err, overlap(err), want)
			}
		}
		b.spoilAll(storetest.VerbAcquire, storetest.Fail(errors.New("connection refused")))
		try("ErrNoQuorum")
		b.spoilAll(storetest.VerbAcquire, storetest.Fail(errors.New("WRONGPASS")))
		try("ErrNoQuorum")
		healed(b)
		b.rival("k", time.Minute, 0, 1, 2)
		try("ErrHeld")
		b.settle()
		failed := map[string]int{}
		for _, e := range b.seen(quorum.EventFailed) {
			failed[overlap(e.Err)]++
		}
		if len(failed) != 2 || failed["ErrNoQuorum"] != 2 || failed["ErrHeld"] != 1 {
			t.Errorf("events %v, want two outages and a contention", failed)
		}
	})
}

func TestR81MixedAnswers(t *testing.T) {
	for _, tc := range []struct {
		name            string
		contended, down int // of five, in the order of asking
		order           quorum.Order
		want            string
	}{
		{"3 contended", 3, 0, quorum.AllAtOnce, "ErrHeld"},
		{"1 contended, 2 down: 2 would not have been enough", 1, 3, quorum.AllAtOnce, "ErrNoQuorum"},
		{"3 contended, 2 down", 3, 2, quorum.AllAtOnce, "ErrHeld"},
		{"2 contended, 3 down", 2, 3, quorum.AllAtOnce, "ErrNoQuorum"},
		{"3 down", 0, 3, quorum.AllAtOnce, "ErrNoQuorum"},
		{"2 contended, 2 down, one that grants", 2, 2, quorum.AllAtOnce, "ErrHeld"},
		{"1 contended, 2 down, in order: two were not asked", 1, 2, quorum.InOrder, "ErrHeld"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			inBubble(t, 5, func(t *testing.T, b *bed) {
				order := b.ask("k")
				b.rival("k", time.Minute, order[:tc.contended]...)
				for n, i := range order {
					// Grants come first, then contention, then failures.
					faults := []storetest.Fault{storetest.Latency(time.Duration(n+2) * time.Millisecond)}
					if n >= tc.contended+tc.down {
						faults[0] = storetest.Latency(time.Millisecond)
					}
					if n >= tc.contended && n < tc.contended+tc.down {
						faults = append(faults, storetest.Fail(nil))
					}
					b.spoil[i].Set(storetest.Always(faults...))
				}
				_, err := b.locker(quorum.AskOrder(tc.order)).TryAcquire(t.Context(), "k")
				if overlap(err) != tc.want {
					t.Errorf("%v matches %q, want %q", err, overlap(err), tc.want)
				}
			})
		})
	}
}

var fraction = regexp.MustCompile(`\.[0-9]{1,3}s more`)

func TestR82ErrorTexts(t *testing.T) {
	var got strings.Builder
	for _, tc := range errorCases {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t, 3, quorum.Consensus(), memstore.Forgetful())
			err := tc.provoke(t, b)
			if err == nil {
				t.Fatalf("%s: no error", tc.name)
			}
			text := err.Error()
			if len(text) > 1024 || strings.ContainsAny(text, "\n\r") || !utf8.ValidString(text) {
				t.Errorf("%s: %d bytes, want one line of at most 1024: %q", tc.name, len(text), text)
			}
			if overlap(err) != tc.matches {
				t.Errorf("%s: %v matches %q, want %q", tc.name, err, overlap(err), tc.matches)
			}
			if tc.cause != nil && !errors.Is(err, tc.cause) {
				t.Errorf("%s: the store client's error is not found in %v", tc.name, err)
			}
			// Of a wait the pauses are drawn at random.
			fmt.Fprintf(&got, "%s:\n  %s\n", tc.name, fraction.ReplaceAllString(text, ".xxxs more"))
		})
	}
	const file = "testdata/errors.golden"
	if *update {
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("the texts are\n%s\nwant\n%s\nrun go test -run %s -update . and look at the difference", got.String(), want, t.Name())
	}
}

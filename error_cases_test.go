package quorum_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

// errDown is a store client's own error.
var errDown = errors.New("dial tcp 10.0.0.7:6379: connect: connection refused")

// errorCases are the situations whose texts stand in testdata.
var errorCases = []struct {
	name    string
	provoke func(t *testing.T, b *bed) error
	matches string
	cause   error // of the store's client
}{
	{"held", func(t *testing.T, b *bed) error {
		b.rival("report:2026-11", 20*time.Second, 0, 1, 2)
		return failed(b.locker().TryAcquire(t.Context(), "report:2026-11"))
	}, "ErrHeld", nil},
	{"held until the wait is over", func(t *testing.T, b *bed) error {
		b.rival("k", 20*time.Second, 0, 1, 2)
		return failed(b.locker().Acquire(t.Context(), "k", quorum.Wait(time.Second)))
	}, "ErrHeld DeadlineExceeded", nil},
	{"all stores down", func(t *testing.T, b *bed) error {
		b.spoilAll(storetest.VerbAcquire, storetest.Fail(errDown))
		return failed(b.locker().TryAcquire(t.Context(), "k"))
	}, "ErrNoQuorum", errDown},
	{"stores down until cancelled", func(t *testing.T, b *bed) error {
		b.spoilAll(storetest.VerbAcquire, storetest.Fail(errDown))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		return failed(b.locker().Acquire(ctx, "k"))
	}, "ErrNoQuorum Canceled", errDown},
	{"one of each", func(t *testing.T, b *bed) error {
		order := b.ask("k")
		b.rival("k", 20*time.Second, order[0])
		b.spoil[order[1]].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Hang()))
		b.spoil[order[2]].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Fail(errDown)))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return failed(b.locker(quorum.AskOrder(quorum.AllAtOnce)).TryAcquire(ctx, "k"))
	}, "ErrHeld DeadlineExceeded", errDown},
	{"a long key and long words of a store", func(t *testing.T, b *bed) error {
		b.spoilAll(storetest.VerbAcquire, storetest.Fail(errors.New(strings.Repeat("very long\nwords ", 50))))
		return failed(b.locker().TryAcquire(t.Context(), strings.Repeat("schlüssel ", 40)))
	}, "ErrNoQuorum", nil},
	{"an ended context", func(t *testing.T, b *bed) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return failed(b.locker().Acquire(ctx, "k"))
	}, "Canceled", nil},
	{"another set", func(t *testing.T, b *bed) error {
		b.spoilAll(storetest.VerbAcquire, storetest.Fail(mismatch))
		return failed(b.locker().Acquire(t.Context(), "k"))
	}, "ErrMismatch", nil},
	{"too slow", func(t *testing.T, b *bed) error {
		order := b.ask("k")
		b.spoil[order[0]].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.LateReply(1900*time.Millisecond)))
		b.spoil[order[1]].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.LateReply(1783*time.Millisecond)))
		b.spoil[order[2]].Set(storetest.On(storetest.Verbs(storetest.VerbAcquire), storetest.Fail(errDown)))
		return failed(b.locker(quorum.TTL(2*time.Second), quorum.CallLimit(2*time.Second)).Acquire(t.Context(), "k"))
	}, "ErrExpired", nil},
	{"in quarantine", func(t *testing.T, b *bed) error {
		for _, m := range b.memory {
			m.Restart(true)
		}
		return failed(b.locker().TryAcquire(t.Context(), "k"))
	}, "ErrNoQuorum", nil},
	{"closed", func(t *testing.T, b *bed) error {
		l := b.locker()
		if err := l.Close(t.Context()); err != nil {
			return nil
		}
		return failed(l.Acquire(t.Context(), "k"))
	}, "ErrClosed", nil},
	{"a key that is no key", func(t *testing.T, b *bed) error {
		return failed(b.locker().Acquire(t.Context(), "a\x00b"))
	}, "ErrInvalidKey", nil},
	{"extension while stores are down", func(t *testing.T, b *bed) error {
		lease := must(t, b.locker(), "k")
		b.settle()
		b.spoilAll(storetest.VerbExtend, storetest.Fail(errDown))
		return lease.Extend(t.Context(), 20*time.Second)
	}, "ErrNoQuorum", errDown},
	{"release while stores are down", func(t *testing.T, b *bed) error {
		lease := must(t, b.locker(), "k")
		b.settle()
		b.spoilAll(storetest.VerbRelease, storetest.Fail(errDown))
		return lease.Release(t.Context())
	}, "ErrNoQuorum", errDown},
	{"lost", func(t *testing.T, b *bed) error {
		lease := must(t, b.locker(quorum.NoRenew()), "k")
		<-lease.Context().Done()
		return tokenless(lease.Err())
	}, "ErrLost", nil},
}

func failed(_ *quorum.Lease, err error) error { return err }

// tokenless replaces the token, which hangs on the calendar, by 1.
func tokenless(err error) error {
	lost := (*quorum.LostError)(nil)
	if !errors.As(err, &lost) || lost.Token < 1 {
		return err
	}
	return &quorum.LostError{Key: lost.Key, Token: 1, Reason: lost.Reason}
}

func TestF134OneUnreachableMember(t *testing.T) {
	for name, cause := range map[string]error{
		"connection refused": &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED},
		"unknown host":       &net.DNSError{Err: "no such host", Name: "store3", IsNotFound: true},
		"TLS error":          x509.UnknownAuthorityError{},
	} {
		t.Run(name, func(t *testing.T) {
			for third := range 3 {
				inBubble(t, 3, func(t *testing.T, b *bed) {
					b.spoil[third].Set(storetest.Always(storetest.Fail(cause)))
					lease := must(t, b.locker(), "k")
					status, err := b.locker().Inspect(t.Context(), "k")
					if err != nil || status.Verdict != quorum.VerdictHeld {
						t.Errorf("Inspect = %+v, %v, want held", status, err)
					}
					if err := lease.Extend(t.Context(), 20*time.Second); err != nil {
						t.Errorf("Extend: %v", err)
					}
					if err := lease.Release(t.Context()); err != nil {
						t.Errorf("Release: %v", err)
					}
				})
				inBubble(t, 3, func(t *testing.T, b *bed) {
					b.set = mustCombine(t, quorum.Unanimous(), b.members()...)
					b.spoil[third].Set(storetest.Always(storetest.Fail(cause)))
					start := time.Now()
					_, err := b.locker().TryAcquire(t.Context(), "k")
					within(t, "a unanimous attempt", since(start), 0, 50*time.Millisecond)
					if overlap(err) != "ErrNoQuorum" || !strings.Contains(err.Error(), cause.Error()[:20]) {
						t.Errorf("unanimous: %v, want ErrNoQuorum with the store's words", err)
					}
					b.settle()
					b.checkEmpty("k")
				})
			}
		})
	}
}

func TestR63OwnerIsNeverShown(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.TTL(2 * time.Second))
		var things []any
		keep := func(err error) {
			for e := err; e != nil; e = errors.Unwrap(e) {
				things = append(things, e)
			}
			things = append(things, err)
		}
		lease := must(t, l, "k")
		_, err := l.TryAcquire(t.Context(), "k")
		keep(err)
		b.spoilAll(storetest.VerbExtend, storetest.Fail(&quorum.RefusedError{Outcome: quorum.OutcomeNotHeld}))
		keep(lease.Extend(t.Context(), 3*time.Second))
		b.spoilAll(storetest.VerbRelease, storetest.Hang())
		keep(lease.Release(t.Context()))
		b.spoilAll(storetest.VerbAcquire, storetest.Panic("ouch"))
		_, err = l.TryAcquire(t.Context(), "k2")
		keep(err)
		things = append(things, lease.Votes(), lease.Context())
		b.settle()
		for _, e := range b.all() {
			things = append(things, e)
		}
		ids := map[quorum.OwnerID]bool{}
		for _, sp := range b.spoil {
			for _, c := range sp.Log(nil) {
				ids[c.Request.Owner.ID] = true
				things = append(things, c, c.Request, &c.Request, c.Request.Owner, c.Request.Owner.ID, c.Err)
			}
		}
		for id := range ids {
			for _, thing := range things {
				for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
					if text := fmt.Sprintf(verb, thing); shows(text, id) {
						t.Fatalf("%s of a %T shows the owner: %s", verb, thing, text)
					}
				}
			}
		}
		if len(ids) < 3 || len(things) < 20 {
			t.Errorf("only %d owners and %d things were looked at", len(ids), len(things))
		}
	})
}

// shows reports whether a text holds half of an ID or more, as hexadecimal
// digits, as a list of numbers or as it is.
func shows(text string, id quorum.OwnerID) bool {
	for _, half := range [][]byte{id[:8], id[8:]} {
		decimal := strings.Trim(fmt.Sprint(half), "[]")
		for _, form := range []string{fmt.Sprintf("%x", half), fmt.Sprintf("%X", half), decimal,
			strings.Trim(fmt.Sprintf("%#v", half)[7:], "{}"), string(half)} {
			if strings.Contains(text, form) {
				return true
			}
		}
	}
	return false
}

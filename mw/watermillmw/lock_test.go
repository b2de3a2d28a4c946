package watermillmw_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/mw"
	"github.com/quorumlock/quorum/mw/watermillmw"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

var errNoKey = errors.New("the message has no key")

func keyOf(m *message.Message) (string, error) {
	if len(m.Payload) == 0 {
		return "", errNoKey
	}
	return string(m.Payload), nil
}

// bed is a lock in one memory store that can be spoilt, in a bubble.
func bed(t *testing.T, f func(t *testing.T, locks *quorum.Locker, store *storetest.Spoiled)) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.Spoil(memstore.New("memory", memstore.WithClock(clock.Go())))
		defer store.Close()
		locks, err := quorum.New(store, quorum.WithClock(clock.Go()))
		if err != nil {
			t.Fatal(err)
		}
		f(t, locks, store)
		store.Set()
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// deliver hands a message to a handler in Lock, and says how long that took.
func deliver(locks *quorum.Locker, payload string, busy mw.Busy, handle message.HandlerFunc, options ...quorum.Option) (produced int, took time.Duration, err error) {
	began := time.Now()
	out, err := watermillmw.Lock(locks, keyOf, busy, options...)(handle)(message.NewMessage("1", []byte(payload)))
	return len(out), time.Since(began), err
}

func TestR73BusyIsGivenBackAfterAPause(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, _ *storetest.Spoiled) {
		handled := 0
		handle := func(m *message.Message) ([]*message.Message, error) {
			handled++
			return message.Messages{m}, nil
		}
		holder, err := locks.TryAcquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range []struct {
			name    string
			payload string
			busy    mw.Busy
			options []quorum.Option
			want    error
			took    time.Duration
		}{
			{"requeue", "k", mw.Requeue, nil, mw.ErrBusy, watermillmw.Pause},
			{"requeue later", "k", mw.Requeue, []quorum.Option{quorum.Wait(time.Second)}, mw.ErrBusy, time.Second},
			{"requeue sooner", "k", mw.Requeue, []quorum.Option{quorum.Wait(0)}, mw.ErrBusy, watermillmw.Pause},
			{"drop", "k", mw.Drop, nil, nil, 0},
			{"no key", "", mw.Drop, nil, errNoKey, watermillmw.Pause},
		} {
			n, took, err := deliver(locks, row.payload, row.busy, handle, row.options...)
			if !errors.Is(err, row.want) || (err == nil) != (row.want == nil) || took != row.took || n != 0 || handled != 0 {
				t.Errorf("%s: %v after %v, %d messages, handled %d times; want %v after %v", row.name, err, took, n, handled, row.want, row.took)
			}
		}
		time.AfterFunc(time.Minute, func() { _ = holder.Release(context.Background()) })
		if n, took, err := deliver(locks, "k", mw.Wait, handle); err != nil || n != 1 || handled != 1 || took < time.Minute {
			t.Errorf("wait: %v after %v, %d messages, handled %d times", err, took, n, handled)
		}
		if n, took, err := deliver(locks, "k", mw.Requeue, handle); err != nil || n != 1 || handled != 2 || took != 0 {
			t.Errorf("free: %v after %v, %d messages, handled %d times", err, took, n, handled)
		}
	})
}

func TestR73OutageIsNeverBusyForARouter(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, store *storetest.Spoiled) {
		store.Set(storetest.Always(storetest.Fail(errors.New("connection refused"))))
		for _, busy := range []mw.Busy{mw.Requeue, mw.Drop, mw.Wait} {
			_, took, err := deliver(locks, "k", busy, func(*message.Message) ([]*message.Message, error) {
				t.Error("handled without a lock")
				return nil, nil
			}, quorum.Wait(time.Second))
			if !errors.Is(err, quorum.ErrNoQuorum) || errors.Is(err, mw.ErrBusy) || took < watermillmw.Pause {
				t.Errorf("busy %d: an outage is %v after %v", busy, err, took)
			}
		}
	})
}

func TestR73MessagesContextEndsOnLoss(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, store *storetest.Spoiled) {
		outer := context.Background()
		msg := message.NewMessageWithContext(outer, "1", []byte("k"))
		out, err := watermillmw.Lock(locks, keyOf, mw.Requeue)(func(msg *message.Message) ([]*message.Message, error) {
			if mw.Lease(msg.Context()).Token() < 1 || quorum.Held(msg.Context(), "k") != nil {
				t.Error("the message's context does not carry its lease")
			}
			store.Set(storetest.Always(storetest.Fail(errors.New("connection refused"))))
			<-msg.Context().Done()
			if lost := (*quorum.LostError)(nil); !errors.As(context.Cause(msg.Context()), &lost) {
				t.Errorf("the context ended by %v", context.Cause(msg.Context()))
			}
			return message.Messages{msg}, nil // a handler that does not notice
		})(msg)
		if !errors.Is(err, quorum.ErrLost) || errors.Is(err, mw.ErrBusy) || out != nil {
			t.Errorf("a message whose lock was lost is %v, with %d to publish", err, len(out))
		}
		if msg.Context() != outer {
			t.Error("the message keeps a context that ended with the lock")
		}
	})
}

func TestR73HandlersErrorAndPanicPassThrough(t *testing.T) {
	bed(t, func(t *testing.T, locks *quorum.Locker, _ *storetest.Spoiled) {
		own := errors.New("the handler's own")
		if _, took, err := deliver(locks, "k", mw.Drop, func(*message.Message) ([]*message.Message, error) { return nil, own }); !errors.Is(err, own) || took != 0 {
			t.Errorf("%v after %v", err, took)
		}
		func() {
			defer func() {
				if recover() != own {
					t.Error("the panic did not pass")
				}
			}()
			_, _, _ = deliver(locks, "k", mw.Drop, func(*message.Message) ([]*message.Message, error) { panic(own) })
		}()
		if _, _, err := deliver(locks, "k", mw.Requeue, func(*message.Message) ([]*message.Message, error) { return nil, nil }); err != nil {
			t.Errorf("the key is not free after an error and a panic: %v", err)
		}
	})
}

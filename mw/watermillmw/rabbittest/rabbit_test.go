package rabbittest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/mw"
)

func TestR73OverRabbitMQ(t *testing.T) {
	broker := testserver.Rabbit(t)
	for name, show := range map[string]func(*testing.T, *bed){
		"consumers never meet at a key": neverMeet,
		"drop drops":                    dropDrops,
		"an outage is not busy":         outageIsNotBusy,
		"loss ends the context":         lossEndsTheContext,
	} {
		t.Run(name, func(t *testing.T) { show(t, newBed(t, broker, name)) })
	}
}

// neverMeet has three consumers handle sixty messages of four keys, each for a
// few round trips, in which a second one at the key would be counted.
func neverMeet(t *testing.T, b *bed) {
	var mu sync.Mutex
	handled := map[string]int{}
	all := make(chan struct{})
	handle := func(m *message.Message) error {
		ctx := context.WithoutCancel(m.Context())
		inside := "inside:" + m.Metadata.Get("key")
		n, err := b.client.Incr(ctx, inside).Result()
		for range 10 {
			err = errors.Join(err, b.client.Ping(ctx).Err())
		}
		err = errors.Join(err, b.client.Decr(ctx, inside).Err())
		if err != nil || n != 1 {
			t.Errorf("message %s: %d handlers at %s, %v", m.UUID, n, inside, err)
		}
		mu.Lock()
		defer mu.Unlock()
		if handled[m.UUID]++; len(handled) == 60 && handled[m.UUID] == 1 {
			close(all)
		}
		return nil
	}
	for key := range 4 { // those of a key together, so that consumers meet
		for i := range 15 {
			b.publish(fmt.Sprint("key-", key), 15*key+i)
		}
	}
	for range 3 {
		b.consume(mw.Requeue, ignore, handle)
	}
	next(t, "end of all messages", all)
}

// dropDrops has one consumer get a message whose key is held, and then a free one.
func dropDrops(t *testing.T, b *bed) {
	holder, err := b.locker().TryAcquire(t.Context(), "held")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{} // of the one consumer, which takes one message at a time
	handled := make(chan string, 10)
	stop := b.consume(mw.Drop, func(m *message.Message) { seen[m.UUID]++ }, func(m *message.Message) error {
		handled <- m.UUID
		return nil
	})
	b.publish("held", 1)
	b.publish("free", 2)
	if first := next(t, "message handled", handled); first != "2" {
		t.Errorf("message %s was handled, and its key is held", first)
	}
	left := b.finish(stop)
	delete(seen, strconv.Itoa(last))
	if want := map[string]int{"1": 1, "2": 1}; !maps.Equal(seen, want) || len(handled) > 0 || len(left) > 0 {
		t.Errorf("delivered %v, want %v; %d more handled, %v left in the queue", seen, want, len(handled), left)
	}
	if err := holder.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// outageIsNotBusy kills the Redis: messages come again and again, and none is
// dropped although busy ones would be.
func outageIsNotBusy(t *testing.T, b *bed) {
	seen, handled := make(chan string, 1000), make(chan string, 10)
	stop := b.consume(mw.Drop, func(m *message.Message) { seen <- m.UUID }, func(m *message.Message) error {
		handled <- m.UUID
		return nil
	})
	b.node.Stop()
	b.publish("k", 1)
	for range 4 {
		next(t, "delivery", seen)
	}
	if len(handled) > 0 {
		t.Error("handled without a lock")
	}
	b.node.Restart()
	if got := next(t, "message handled", handled); got != "1" {
		t.Errorf("message %s was handled", got)
	}
	if left := b.finish(stop); len(left) > 0 || len(handled) > 0 {
		t.Errorf("%v left in the queue, and %d more handled", left, len(handled))
	}
}

// lossEndsTheContext empties the Redis under a handler, which does not care: its
// message comes again.
func lossEndsTheContext(t *testing.T, b *bed) {
	began, cause := make(chan struct{}, 10), make(chan error, 1)
	first := true // of the one consumer, which takes one message at a time
	stop := b.consume(mw.Requeue, ignore, func(m *message.Message) error {
		if first {
			first = false
			began <- struct{}{}
			<-m.Context().Done()
			cause <- context.Cause(m.Context())
			return nil
		}
		began <- struct{}{}
		return nil
	})
	b.publish("k", 1)
	next(t, "message handled", began)
	if err := b.client.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if lost := (*quorum.LostError)(nil); !errors.As(next(t, "end of the context", cause), &lost) {
		t.Error("the context ended by something else than the loss")
	}
	next(t, "second delivery", began)
	if left := b.finish(stop); len(left) > 0 || len(began) > 0 {
		t.Errorf("%v left in the queue, and it was handled %d more times", left, len(began))
	}
}

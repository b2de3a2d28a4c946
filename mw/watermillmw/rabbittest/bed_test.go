package rabbittest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-amqp/v3/pkg/amqp"
	"github.com/ThreeDotsLabs/watermill/message"
	amqp091 "github.com/rabbitmq/amqp091-go"
	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/mw"
	"github.com/quorumlock/quorum/mw/watermillmw"
	"github.com/quorumlock/quorum/stores/redisstore"
)

const (
	ttl   = 2 * time.Second
	last  = 1000            // number of the message that ends a test
	limit = 2 * time.Minute // on anything that a busy machine may be slow at
)

// bed is a queue of a broker and locks in one Redis.
type bed struct {
	t      *testing.T
	config amqp.Config
	queue  string
	node   *testserver.RedisNode
	client *redis.Client
	last   chan struct{}
}

func newBed(t *testing.T, broker *testserver.RabbitNode, queue string) *bed {
	b := &bed{t: t, config: amqp.NewDurableQueueConfig(broker.URL), queue: queue, node: testserver.Redis(t), last: make(chan struct{}, 10)}
	b.client = redis.NewClient(&redis.Options{Addr: b.node.Addr, MaxRetries: -1}) // a retry may double a request
	t.Cleanup(func() { _ = b.client.Close() })
	if err := b.locker().Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	subscriber, err := amqp.NewSubscriber(b.config, watermill.NopLogger{})
	if err == nil {
		err = errors.Join(subscriber.SubscribeInitialize(queue), subscriber.Close()) // makes the queue
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bed) locker() *quorum.Locker {
	b.t.Helper()
	store, err := redisstore.New("redis", b.client)
	if err != nil {
		b.t.Fatal(err)
	}
	locks, err := quorum.New(store, quorum.TTL(ttl), quorum.MaxTTL(ttl))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = locks.Close(context.Background()) })
	return locks
}

func (b *bed) publish(key string, numbers ...int) {
	b.t.Helper()
	publisher, err := amqp.NewPublisher(b.config, watermill.NopLogger{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, n := range numbers {
		m := message.NewMessage(strconv.Itoa(n), nil)
		m.Metadata.Set("key", key)
		if err := publisher.Publish(b.queue, m); err != nil {
			b.t.Fatal(err)
		}
	}
	if err := publisher.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// consume runs a consumer, a connection and a router of its own, until stop or
// the end of the test. seen is called for each delivery.
func (b *bed) consume(busy mw.Busy, seen func(*message.Message), handle message.NoPublishHandlerFunc) (stop func()) {
	b.t.Helper()
	subscriber, err := amqp.NewSubscriber(b.config, watermill.NopLogger{})
	if err != nil {
		b.t.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: limit}, watermill.NopLogger{})
	if err != nil {
		b.t.Fatal(err)
	}
	router.AddMiddleware(watermillmw.Lock(b.locker(), func(m *message.Message) (string, error) {
		seen(m)
		return m.Metadata.Get("key"), nil
	}, busy))
	router.AddConsumerHandler("handler", b.queue, subscriber, func(m *message.Message) error {
		if m.UUID == strconv.Itoa(last) {
			b.last <- struct{}{}
			return nil
		}
		return handle(m)
	})
	done := make(chan error, 1)
	go func() { done <- router.Run(context.Background()) }()
	stop = sync.OnceFunc(func() {
		if err := errors.Join(router.Close(), <-done); err != nil {
			b.t.Error(err)
		}
	})
	b.t.Cleanup(stop)
	return stop
}

// finish has the bed's one consumer take a last message, which it does when it has
// settled all before, and ends it. It returns what is then in the queue but that.
func (b *bed) finish(stop func()) (left []string) {
	b.t.Helper()
	b.publish("last", last)
	next(b.t, "last message", b.last)
	stop()
	connection, err := amqp091.Dial(b.config.Connection.AmqpURI)
	if err != nil {
		b.t.Fatal(err)
	}
	defer connection.Close()
	channel, err := connection.Channel()
	if err != nil {
		b.t.Fatal(err)
	}
	for {
		delivery, ok, err := channel.Get(b.queue, true)
		if err != nil {
			b.t.Fatal(err)
		}
		if !ok {
			return left
		}
		m, err := b.config.Marshaler.Unmarshal(delivery)
		if err != nil {
			b.t.Fatal(err)
		}
		if m.UUID != strconv.Itoa(last) { // whose acknowledgement its end may have overtaken
			left = append(left, m.UUID)
		}
	}
}

// next waits for something that the test has a channel for.
func next[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(limit):
		t.Fatalf("no %s within %v", what, limit)
		panic("not reached")
	}
}

func ignore(*message.Message) {}

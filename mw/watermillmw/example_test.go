package watermillmw_test

import (
	"context"
	"fmt"
	"log"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/mw"
	"github.com/quorumlock/quorum/mw/watermillmw"
	"github.com/quorumlock/quorum/stores/memstore"
)

// A router whose handlers have each order to themselves. In production the
// Locker is over stores that all consumers share, and the broker is a real one.
func ExampleLock() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	locks, err := quorum.New(memstore.New("memory"))
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close(context.Background())

	broker := gochannel.NewGoChannel(gochannel.Config{Persistent: true}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		log.Fatal(err)
	}
	router.AddMiddleware(watermillmw.Lock(locks, func(m *message.Message) (string, error) {
		return "order:" + m.Metadata.Get("order"), nil
	}, mw.Requeue)) // before Retry and PoisonQueue
	router.AddConsumerHandler("charge", "orders", broker, func(m *message.Message) error {
		lease := mw.Lease(m.Context()) // lease.Token() fences what is written
		fmt.Println("alone at", lease.Key())
		stop()
		return nil
	})

	order := message.NewMessage(watermill.NewUUID(), nil)
	order.Metadata.Set("order", "7")
	if err := broker.Publish("orders", order); err != nil {
		log.Fatal(err)
	}
	if err := router.Run(ctx); err != nil {
		log.Fatal(err)
	}
	// Output: alone at order:7
}

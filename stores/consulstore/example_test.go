package consulstore_test

import (
	"context"
	"fmt"
	"log"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/consulstore"
)

// Three clusters, of which one may be down at any time. The client is your own,
// and stays open.
func Example() {
	var members []quorum.Store
	for name, address := range map[string]string{"a": "consul-a:8500", "b": "consul-b:8500", "c": "consul-c:8500"} {
		client, err := api.NewClient(&api.Config{Address: address})
		if err != nil {
			log.Fatal(err)
		}
		store, err := consulstore.New(name, client)
		if err != nil {
			log.Fatal(err)
		}
		members = append(members, store)
	}
	stores, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		log.Fatal(err)
	}
	locks, err := quorum.New(stores) // with a TTL of 15 s; Consul takes 10 s and more
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = locks.Close(context.Background()) }()
	err = locks.Do(context.Background(), "import", func(ctx context.Context, lease *quorum.Lease) error {
		fmt.Println("token", lease.Token())
		return nil
	})
	if err != nil {
		log.Print(err)
	}
}

module github.com/quorumlock/quorum/mw/watermillmw/rabbittest

go 1.26.0

require (
	github.com/ThreeDotsLabs/watermill v1.5.1
	github.com/ThreeDotsLabs/watermill-amqp/v3 v3.0.2
	github.com/quorumlock/quorum v0.0.0
	github.com/quorumlock/quorum/mw/watermillmw v0.0.0
	github.com/quorumlock/quorum/stores/redisstore v0.0.0
	github.com/rabbitmq/amqp091-go v1.10.0
	github.com/redis/go-redis/v9 v9.23.0
)

require (
	github.com/cenkalti/backoff/v3 v3.2.2 // indirect
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/google/uuid v1.6.0 // indirect
	github.com/hashicorp/errwrap v1.1.0 // indirect
	github.com/hashicorp/go-multierror v1.1.1 // indirect
	github.com/lithammer/shortuuid/v3 v3.0.7 // indirect
	github.com/oklog/ulid v1.3.1 // indirect
	github.com/pkg/errors v0.9.1 // indirect
	go.uber.org/atomic v1.12.0 // indirect
	golang.org/x/sys v0.48.0 // indirect
)

replace (
	github.com/quorumlock/quorum => ../../..
	github.com/quorumlock/quorum/mw/watermillmw => ..
	github.com/quorumlock/quorum/stores/redisstore => ../../../stores/redisstore
)

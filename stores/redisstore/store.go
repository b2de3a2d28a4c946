package redisstore

import (
	"crypto/rand"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// Store is one Redis server, or one Redis Cluster, as a member of a quorum. It
// is safe for concurrent use and never closes the client it was given.
type Store struct {
	name     string
	client   redis.UniversalClient
	prefix   string
	runID    string // given by the embedder, or empty
	guard    bool
	replicas int           // that must acknowledge a grant
	patience time.Duration // with them
	limits   quorum.Limits
	owned    io.Closer // the client, when Opener made it
	heeds    bool      // the client watches its context, as far as is known

	policy atomic.Pointer[string] // what the server evicts when its memory is full

	parts   []part
	single  *shard                  // nil in a cluster
	cluster *redis.ClusterClient    // nil on a single server
	shards  sync.Map                // of a cluster: *redis.Client of a primary to *shard
	nodes   atomic.Pointer[string]  // of a cluster: their ids, comma-joined
	read    atomic.Pointer[reading] // of a cluster's records, the last
	notices string                  // what the channels begin with on which the server tells of its keys
	hub     hub
}

// Each of them is found by quorum.As.
var (
	_ quorum.HighWater  = (*Store)(nil)
	_ quorum.Inspector  = (*Store)(nil)
	_ quorum.Watcher    = (*Store)(nil)
	_ quorum.Membership = (*Store)(nil)
	_ quorum.Adviser    = (*Store)(nil)
	_ io.Closer         = (*Store)(nil)
)

var _ quorum.Async = (*Store)(nil)

// New returns the store that client reaches, under the name that all clients
// know it by. It does no I/O. A Ring is refused with [quorum.ErrUnsupported].
func New(name string, client redis.UniversalClient, options ...Option) (*Store, error) {
	s := &Store{name: name, client: client, prefix: defaultPrefix, guard: true, heeds: true}
	if name == "" {
		return nil, fmt.Errorf("%w: a store needs a name", quorum.ErrInvalidOption)
	}
	retries := true // a client of a kind that is not known here may do anything
	switch c := client.(type) {
	case nil:
		return nil, fmt.Errorf("%w: store %s: the client is nil", quorum.ErrInvalidOption, name)
	case *redis.Ring:
		return nil, fmt.Errorf("%w: store %s: a %T spreads keys over servers that do not know of one another; give each "+
			"store a server of its own", quorum.ErrUnsupported, name, client)
	case *redis.ClusterClient: // its nodes' clients are used, and it hands its retries down to them
		retries, s.heeds = c.Options().MaxRetries > 0, c.Options().ContextTimeoutEnabled
	case *redis.Client:
		retries, s.heeds = c.Options().MaxRetries > 0, c.Options().ContextTimeoutEnabled
	}
	s.notices = keyspace + "0__:"
	if c, ok := client.(*redis.Client); ok {
		s.notices = fmt.Sprintf("%s%d__:", keyspace, c.Options().DB)
	}
	for _, option := range options {
		if err := option(s); err != nil {
			return nil, fmt.Errorf("store %s: %w", name, err)
		}
	}
	if c, ok := client.(*redis.ClusterClient); ok {
		if s.runID != "" {
			return nil, fmt.Errorf("%w: store %s: RunID is for one embedded server, not for a cluster", quorum.ErrInvalidOption, name)
		}
		s.cluster = c
		for i := range partCount {
			s.parts = append(s.parts, newPart(s.prefix+":"+strconv.Itoa(i)))
		}
	} else {
		s.single, s.parts = s.newShard(client), []part{newPart(s.prefix)}
	}
	s.hub.own = "{" + s.prefix + "}:waiter:" + rand.Text()
	s.limits = quorum.Limits{
		MinTTL:  time.Millisecond,
		Grain:   time.Microsecond,
		MaxKey:  maxKey,
		Reach:   quorum.ReachCluster,
		Shares:  true,
		Watches: true,
		Queues:  true,
		Forgets: s.guard,
		Doubles: retries,
	}
	return s, nil
}

const (
	maxKey   = 512         // bytes
	maxLabel = 256         // bytes
	keepMax  = time.Minute // of an entry in a queue
)

// Name implements [quorum.Store].
func (s *Store) Name() string { return s.name }

// Limits implements [quorum.Store].
func (s *Store) Limits() quorum.Limits { return s.limits }

// Close ends the connection of the store's watches, and closes the client that
// [Opener] made for it. A client that was given to [New] is left open.
func (s *Store) Close() error {
	s.hub.close()
	if s.single != nil {
		s.single.lanes.close()
	}
	s.shards.Range(func(_, of any) bool {
		of.(*shard).lanes.close()
		return true
	})
	if s.owned == nil {
		return nil
	}
	return s.owned.Close()
}

// check refuses what no store could do, before anything is sent.
func (s *Store) check(v verb, r *quorum.Request) error {
	var err error
	switch {
	case r.Key == "" || len(r.Key) > maxKey:
		err = fmt.Errorf("%w: %d bytes, where 1 to %d are allowed", quorum.ErrInvalidKey, len(r.Key), maxKey)
	case !utf8.ValidString(r.Key):
		err = fmt.Errorf("%w: %q is not UTF-8", quorum.ErrInvalidKey, r.Key)
	case strings.Contains(r.Key, "\x00"):
		err = fmt.Errorf("%w: %q holds a NUL", quorum.ErrInvalidKey, r.Key)
	case len(r.Label) > maxLabel:
		err = fmt.Errorf("%w: a label of %d bytes, where %d are allowed", quorum.ErrInvalidOption, len(r.Label), maxLabel)
	case v == release:
		return nil
	case r.MaxTTL <= 0:
		err = fmt.Errorf("%w: MaxTTL %v is not positive", quorum.ErrInvalidTTL, r.MaxTTL)
	case v == inspect || v == watch:
		return nil
	case r.TTL <= 0 || r.TTL > r.MaxTTL:
		err = fmt.Errorf("%w: %v for key %q does not lie between 0 and MaxTTL, %v", quorum.ErrInvalidTTL, r.TTL, r.Key, r.MaxTTL)
	case r.Floor < 0 || r.Kind == quorum.KindRepair && r.Floor == 0 && v == acquire:
		err = fmt.Errorf("%w: %v of key %q to the token %d", quorum.ErrInvalidOption, r.Kind, r.Key, r.Floor)
	case int(r.Kind) >= len(kinds) || int(r.Mode) >= len(modes) || int(r.Wait) >= len(waits):
		err = fmt.Errorf("%w: kind %d, mode %d or wait %d is not known", quorum.ErrInvalidOption, r.Kind, r.Mode, r.Wait)
	case queued(r) && (r.Ticket < 0 || r.Keep <= 0 || r.Keep > keepMax || r.Claim <= 0 || r.Claim > r.TTL):
		err = fmt.Errorf("%w: ticket %d is below 0, keep %v not between 0 and %v, or claim %v not between 0 and the TTL %v",
			quorum.ErrInvalidOption, r.Ticket, r.Keep, keepMax, r.Claim, r.TTL)
	default:
		return nil
	}
	return s.unsent(err)
}

// unsent is an error of a request that was not made.
func (s *Store) unsent(err error) error {
	return quorum.Undelivered(fmt.Errorf("redis store %s: %w", s.name, err))
}

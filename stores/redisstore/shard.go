package redisstore

import (
	"context"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// shard is one server: the only one of a store, or a primary of its cluster.
type shard struct {
	store  *Store
	client redis.UniversalClient
	lanes  lanes

	recent   atomic.Pointer[scripts] // the family used last: nearly always the only one
	loading  chan struct{}           // holds one: who holds it may use families
	families map[family]*scripts
}

func (s *Store) newShard(client redis.UniversalClient) *shard {
	return &shard{
		store: s, client: client, lanes: lanes{
			client: client, replicas: s.replicas, patience: s.patience, ended: s.ended, wake: make(chan bool, 2*laneCount),
		},
		loading: make(chan struct{}, 1), families: make(map[family]*scripts),
	}
}

// part is the keys under one hash tag, with one record: all of a server's, or a
// share of a cluster's.
type part struct {
	tag    string // braces included
	record any    // the record's key: a string, put into arguments as it is
}

func newPart(name string) part { return part{"{" + name + "}", "{" + name + "}:record"} }

// partCount is how many parts a cluster has, so that a script touches one slot.
// It is part of the format: a name must lie in one part for every client.
const partCount = 1024

// part is the one that a name lies in.
func (s *Store) part(key string) *part {
	if s.cluster == nil {
		return &s.parts[0]
	}
	return &s.parts[crc32.ChecksumIEEE([]byte(key))%partCount]
}

// shardOf finds the server of a part. That a cluster's client is wrong about it
// does no harm: a script is loaded where it was found to belong, and another
// server does not know it.
func (s *Store) shardOf(ctx context.Context, p *part) (*shard, error) {
	if s.cluster == nil {
		return s.single, nil
	}
	node, err := s.cluster.MasterForKey(ctx, p.tag)
	if err != nil {
		return nil, quorum.Undelivered(fmt.Errorf("find the node of the cluster that serves %s: %w", p.tag, err))
	}
	if known, ok := s.shards.Load(node); ok {
		return known.(*shard), nil
	}
	known, had := s.shards.LoadOrStore(node, s.newShard(node))
	if !had {
		s.forget(ctx)
	}
	return known.(*shard), nil
}

// forget drops the shards of nodes that are primaries no more. Who still uses one
// goes on with it, and a shard that was dropped too soon is made again.
func (s *Store) forget(ctx context.Context) {
	var mu sync.Mutex
	primaries := map[any]bool{}
	err := s.cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		primaries[node] = true
		return nil
	})
	if err != nil {
		return // with the next new one
	}
	s.shards.Range(func(node, _ any) bool {
		if !primaries[node] {
			s.shards.Delete(node)
		}
		return true
	})
}

// moved tells a cluster's client to look anew which server has which slots.
func (s *Store) moved(ctx context.Context, err error) {
	if s.cluster == nil {
		return
	}
	for _, sign := range []string{"MOVED ", "ASK ", "READONLY ", "CLUSTERDOWN ", "dial "} {
		if strings.Contains(err.Error(), sign) {
			s.cluster.ReloadState(ctx)
			return
		}
	}
}

// server is who answered: the run id, by which one server under two names is
// noticed. A cluster is all its nodes, by the ids that they keep for ever.
func (s *Store) server(at *scripts) string {
	if s.cluster == nil {
		return at.runID
	}
	return *s.nodes.Load()
}

// meet asks a node which nodes the cluster has.
func (s *Store) meet(ctx context.Context, tx *redis.Tx) error {
	//lint:ignore SA1019 its successor is not in Redis 6.2
	slots, err := tx.ClusterSlots(ctx).Result()
	if err != nil {
		return err
	}
	var ids []string
	for _, slot := range slots {
		for _, node := range slot.Nodes {
			ids = append(ids, node.ID)
		}
	}
	slices.Sort(ids)
	all := strings.Join(slices.Compact(ids), ",")
	s.nodes.Store(&all)
	return nil
}

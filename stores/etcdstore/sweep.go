package etcdstore

import (
	"context"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum/internal/core"
)

// A name that nobody holds leaves its counter. When the step has moved past
// it, nothing depends on it: who takes the name next starts above. Whoever
// moves the step, once in five minutes, drops such counters.

const (
	sweepLimit = 10 * time.Second // the rest is for the next sweep
	sweepPage  = 200              // keys read at once
	sweepBatch = 30               // counters a transaction: a server takes 128 compares
	// restSteps is how many steps a counter rests beyond its own: ten minutes at
	// least, as counters of all kinds of stores do.
	restSteps = 2
)

// sweeper runs one sweep at a time.
type sweeper struct {
	mu     sync.Mutex
	closed bool
	cancel context.CancelFunc // of the sweep under way, or nil
	from   string             // the key to go on with
}

// sweep drops idle counters below step, unless a sweep is under way.
func (s *Store) sweep(step int64) {
	w := &s.sweeper
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed || w.cancel != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), sweepLimit)
	w.cancel = cancel
	go func() {
		defer cancel()
		next := s.sweepFrom(ctx, w.from, step)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.from, w.cancel = next, nil
	}()
}

// close ends a sweep that is under way, and starts no other.
func (w *sweeper) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.cancel != nil {
		w.cancel()
	}
}

// idle is a counter that a sweep may drop.
type idle struct {
	folder string
	mod    int64
}

// sweepFrom goes through the counters from a key on, and returns where it
// stopped. An error ends it: nothing waits for a sweep.
func (s *Store) sweepFrom(ctx context.Context, from string, step int64) (next string) {
	end := clientv3.GetPrefixRangeEnd(s.namesFolder())
	if from == "" {
		from = s.namesFolder()
	}
	record, err := s.look(ctx, "")
	if err != nil || record.record.Step < step {
		return from
	}
	for {
		page, err := s.client().Get(ctx, from, clientv3.WithRange(end), clientv3.WithLimit(sweepPage))
		if err != nil {
			return from
		}
		var found []idle
		for _, kv := range page.Kvs {
			folder, ok := strings.CutSuffix(string(kv.Key), "/"+countLeaf)
			t, err := parseTally(kv.Value)
			if ok && err == nil && t.counter < (step-restSteps)<<core.StepBits {
				found = append(found, idle{folder + "/", kv.ModRevision})
			}
			from = string(kv.Key) + "\x00"
		}
		for len(found) > 0 {
			n := min(sweepBatch, len(found))
			if s.dropIdle(ctx, found[:n], record.recordMod) != nil {
				return from
			}
			found = found[n:]
		}
		if !page.More {
			return ""
		}
	}
}

// dropIdle drops counters, if nobody holds their names and neither they nor the
// record have changed. Where one has, the batch stays for the next sweep.
func (s *Store) dropIdle(ctx context.Context, found []idle, recordMod int64) error {
	compares := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(s.recordKey()), "=", recordMod)}
	var drops []clientv3.Op
	for _, f := range found {
		compares = append(compares,
			clientv3.Compare(clientv3.ModRevision(f.folder+countLeaf), "=", f.mod),
			clientv3.Compare(clientv3.CreateRevision(f.folder+voteLeaf), "=", 0),
			clientv3.Compare(clientv3.CreateRevision(f.folder+readLeaf).WithPrefix(), "=", 0))
		drops = append(drops, clientv3.OpDelete(f.folder+countLeaf))
	}
	_, err := s.client().Txn(ctx).If(compares...).Then(drops...).Commit()
	return err
}

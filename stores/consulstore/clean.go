package consulstore

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
)

const (
	cleanLimit = time.Minute // for one round in the background
	cleanBatch = 20          // names that are looked at, and dropped, at once: three operations each
)

// Clean deletes the counters that no name needs, and returns how many: those
// of names that nobody holds, whose next token, counted from the store's step,
// is above all that were given. The record is compared in the same transaction,
// so that the step is one that whoever starts the name again cannot be below.
// It drops queues too, not counted, whose waiters this store has seen stand
// there, and not ask, for as long as their entries last. The store does so by
// itself about every five minutes, when one of its calls moves the step.
func (s *Store) Clean(ctx context.Context) (dropped int, err error) {
	folders, _, err := s.client.KV().Keys(s.prefix+nameDir, "/", s.query(ctx))
	if err != nil {
		return 0, s.wrap(inspect, "", err)
	}
	for len(folders) > 0 {
		batch := folders[:min(cleanBatch, len(folders))]
		folders = folders[len(batch):]
		n, err := s.cleanBatch(ctx, batch)
		if dropped += n; err != nil {
			err, _ = explain(err)
			return dropped, s.wrap(inspect, "", err)
		}
	}
	return dropped, nil
}

// cleanBatch deletes what is idle among some names. A batch that meets a change
// is left to the next round.
func (s *Store) cleanBatch(ctx context.Context, folders []string) (dropped int, err error) {
	var ops api.TxnOps
	var index uint64
	for _, folder := range folders {
		folder = strings.TrimPrefix(folder, s.prefix)
		text, err := url.QueryUnescape(strings.TrimSuffix(strings.TrimPrefix(folder, nameDir), "/"))
		if err != nil || nameFolder(text) != folder {
			continue // none of ours
		}
		snap, err := s.read(ctx, text)
		if err != nil {
			return 0, err
		}
		if index == 0 {
			index = snap.recordIndex
		}
		if snap.recordIndex != index || !s.idle(snap) {
			continue
		}
		if snap.countIndex > 0 {
			drop := s.op(api.KVDeleteCAS, folder+countPart)
			drop.KV.Index = snap.countIndex
			ops = append(ops, drop)
			dropped++
		}
		if snap.queueIndex > 0 { // its waiters died
			drop := s.op(api.KVDeleteCAS, folder+queuePart)
			drop.KV.Index = snap.queueIndex
			ops = append(ops, drop, s.op(api.KVDeleteTree, bellFolder(text)))
		}
	}
	if len(ops) == 0 {
		return 0, nil
	}
	same := s.op(api.KVCheckIndex, recordKey)
	same.KV.Index = index
	ok, reply, _, err := s.client.Txn().Txn(append(api.TxnOps{same}, ops...), s.query(ctx))
	if err == nil && !ok && denied(failure(reply.Errors)) {
		err = failure(reply.Errors)
	}
	if err != nil || !ok {
		return 0, err
	}
	return dropped, nil
}

// idle reports whether a name needs its counter no more.
func (s *Store) idle(snap *snapshot) bool {
	if snap.recordIndex == 0 || snap.fell || snap.countIndex == 0 && snap.queueIndex == 0 {
		return false
	}
	rec := snap.recordOf()
	// As of a release: the step stays as it is in the record that is compared.
	c := &call{Store: s, verb: release, r: &quorum.Request{}}
	now, err := c.now(snap, &rec)
	if err != nil {
		return false
	}
	name := snap.nameOf("", now, time.Hour)
	return name.Idle(&rec, now)
}

// cleanRound is a round in the background. What goes wrong harms no lock and is
// met again in the next round.
func (s *Store) cleanRound(ctx context.Context) { _, _ = s.Clean(ctx) }

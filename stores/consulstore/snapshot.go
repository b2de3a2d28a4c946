package consulstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// snapshot is the record and a name as one transaction showed them.
type snapshot struct {
	record      recordValue
	recordIndex uint64   // 0 where it is missing
	marks       []string // sessions of quarantines whose keys are there
	waiting     bool     // that of the present one is: its time is not over
	last        uint64   // index of the last transaction
	fell        bool     // it is below one that was seen before

	count      countValue
	countIndex uint64 // 0 where there is none
	votes      []keptVote
	tombs      []tombValue
	forced     []forcedValue
	queue      waitlist.List
	queueIndex uint64                   // 0 where nobody waits
	ages       map[string]time.Duration // of the queue's lines
}

type keptVote struct {
	voteValue
	session string
}

func (s *snapshot) vote(owner string) *keptVote {
	for i := range s.votes {
		if s.votes[i].Owner == owner {
			return &s.votes[i]
		}
	}
	return nil
}

// read takes a snapshot. It is consistent: a leader that was deposed without
// knowing it would otherwise show the past.
func (s *Store) read(ctx context.Context, key string) (*snapshot, error) {
	ops := api.TxnOps{s.op(api.KVGetTree, setDir)}
	folder := ""
	if key != "" {
		folder = nameFolder(key)
		ops = append(ops, s.op(api.KVGetTree, folder))
	}
	before := s.seen.latest()
	ok, reply, _, err := s.client.Txn().Txn(ops, s.query(ctx))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, failure(reply.Errors)
	}
	snap := &snapshot{}
	for _, result := range reply.Results {
		if result.KV == nil {
			continue
		}
		rest := strings.TrimPrefix(result.KV.Key, s.prefix)
		var err error
		if part, ok := strings.CutPrefix(rest, folder); ok && key != "" {
			err = snap.takeName(part, result.KV)
		} else {
			err = snap.takeRecord(rest, result.KV)
		}
		if err != nil {
			return nil, err
		}
	}
	if key != "" {
		snap.ages = s.waiters.See(key, snap.queue.String(), s.local())
	}
	snap.waiting = slices.Contains(snap.marks, snap.record.Quarantine)
	snap.fell = s.seen.fell(before, position{snap.record.Life, snap.last})
	return snap, nil
}

func (s *snapshot) takeRecord(part string, kv *api.KVPair) error {
	switch session, quarantine := strings.CutPrefix(part, quarantineDir); {
	case part == recordKey:
		s.recordIndex = kv.ModifyIndex
		if err := decode(kv.Key, kv.Value, &s.record); err != nil {
			return err
		}
		if s.record.Version != version {
			return fmt.Errorf("the record at %s has version %d, which this package does not know; use another prefix",
				kv.Key, s.record.Version)
		}
	case part == lastKey:
		s.last = kv.ModifyIndex
	case quarantine && kv.Session == session:
		s.marks = append(s.marks, session)
	}
	return nil
}

func (s *snapshot) takeName(part string, kv *api.KVPair) error {
	switch part {
	case countPart:
		s.countIndex = kv.ModifyIndex
		return decode(kv.Key, kv.Value, &s.count)
	case queuePart:
		var err error
		s.queueIndex = kv.ModifyIndex
		if s.queue, err = waitlist.Parse(string(kv.Value)); err != nil {
			return fmt.Errorf("%s: %w; another version of this package, or a person, wrote it: use another prefix", kv.Key, err)
		}
		return nil
	}
	kind, session, _ := strings.Cut(part, "/")
	if kv.Session != session {
		return nil // nobody's: it would never end
	}
	switch kind + "/" {
	case votePart:
		v := keptVote{session: session}
		if err := decode(kv.Key, kv.Value, &v.voteValue); err != nil {
			return err
		}
		s.votes = append(s.votes, v)
	case tombPart:
		var t tombValue
		if err := decode(kv.Key, kv.Value, &t); err != nil {
			return err
		}
		s.tombs = append(s.tombs, t)
	case forcedPart:
		var f forcedValue
		if err := decode(kv.Key, kv.Value, &f); err != nil {
			return err
		}
		s.forced = append(s.forced, f)
	}
	return nil
}

// Numbers of the model's constants, as they are stored.
const (
	shared   = 1 // core.Shared
	released = 1 // core.PreviousReleased
	expired  = 2 // core.PreviousExpired
)

// nameOf is the name as the model has it at now. What has a key is there, and
// how long it will be nobody knows: of another's vote twice the session's TTL
// is the most, and of this owner's the least counts, so that no more is
// promised than a session that is renewed or made in this call keeps.
func (s *snapshot) nameOf(owner string, now model.Time, maxTTL time.Duration) model.Name {
	n := model.Name{
		Known: s.count.Number > 0, Writer: s.count.Writer, Counter: s.count.Number, Keep: model.Time(s.count.Keep),
	}
	switch {
	case len(s.votes) < s.count.Votes, s.count.Last == expired:
		n.Last = expired
	case s.count.Last == released:
		n.Last = released
	}
	for _, v := range s.votes {
		vote := model.Vote{Token: v.Token, Since: model.Time(v.Since), Label: v.Label}
		vote.Owner.ID, vote.Owner.Attempt = [16]byte(ownerID(v.Owner)), v.Attempt
		if v.Shared {
			vote.Mode = shared
		}
		vote.Until = now.Add(2 * time.Duration(v.TTL) * time.Microsecond)
		if v.Owner == owner {
			vote.Until = now + 1
		}
		n.Votes = append(n.Votes, vote)
	}
	slices.SortFunc(n.Votes, func(a, b model.Vote) int { return slices.Compare(a.Owner.ID[:], b.Owner.ID[:]) })
	n.Queue = s.queue.Without(served(s.count, n.Votes)).Entries(now, s.ages)
	tombs := map[string]uint32{}
	for _, t := range s.tombs {
		tombs[t.Owner] = max(tombs[t.Owner], t.Attempt)
	}
	for owner, attempt := range tombs {
		n.Tombs = append(n.Tombs, model.Tomb{ID: [16]byte(ownerID(owner)), Attempt: attempt, Until: now.Add(maxTTL)})
	}
	slices.SortFunc(n.Tombs, func(a, b model.Tomb) int { return slices.Compare(a.ID[:], b.ID[:]) })
	labels := map[string]string{}
	for _, f := range s.forced {
		for _, owner := range f.Owners {
			labels[owner] = f.Label
		}
	}
	for owner, label := range labels {
		n.Forced = append(n.Forced, model.Forced{ID: [16]byte(ownerID(owner)), Label: label, Until: now.Add(maxTTL)})
	}
	slices.SortFunc(n.Forced, func(a, b model.Forced) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return n
}

// recordOf is the record as the model has it. A record that is missing, or
// that is older than one seen before, begins a quarantine.
func (s *snapshot) recordOf() model.Record {
	if s.recordIndex == 0 {
		return model.Record{}
	}
	r := s.record
	rec := model.Record{Standing: model.Voting, Lost: r.Lost, Step: r.Step, Base: r.Base}
	if r.Quarantine != "" {
		rec.Standing, rec.Run, rec.End = model.Quarantined, r.Quarantine, model.Time(r.End)
	}
	if s.fell {
		rec.Standing = model.Doubtful
	}
	for i, set := range r.Sets[:min(len(r.Sets), len(rec.Serves))] {
		rec.Serves[i], _ = strconv.ParseUint(set, 16, 64)
		rec.Serving++
	}
	return rec
}

func (s *Store) op(v api.KVOp, key string) *api.TxnOp {
	return &api.TxnOp{KV: &api.KVTxnOp{Verb: v, Key: s.prefix + key}}
}

func (s *Store) query(ctx context.Context) *api.QueryOptions {
	return (&api.QueryOptions{Datacenter: s.datacenter, RequireConsistent: true}).WithContext(ctx)
}

func (s *Store) options(ctx context.Context) *api.WriteOptions {
	return (&api.WriteOptions{Datacenter: s.datacenter}).WithContext(ctx)
}

// wrap says what was being done to which key.
func (s *Store) wrap(v verb, key string, err error) error {
	if key == "" {
		return fmt.Errorf("consul store %s: %v the set: %w", s.name, v, err)
	}
	return fmt.Errorf("consul store %s: %v %q: %w", s.name, v, key, err)
}

// unsent is an error of a request that left nothing.
func (s *Store) unsent(v verb, key string, err error) error {
	err, _ = explain(err)
	return quorum.Undelivered(s.wrap(v, key, err))
}

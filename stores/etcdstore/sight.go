package etcdstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// sight is what the server showed at one revision: the record, and all that it
// keeps of one name. Ends are not in it: a vote that is there stands.
type sight struct {
	revision   int64
	server     string // identity of the cluster
	record     model.Record
	recordMod  int64 // revision of the record's last change; 0 when there is none
	quarantine int64 // lease of the quarantine in the record
	over       bool  // that quarantine's time is over
	name       model.Name
	held       bool            // of the tally
	kept       map[string]kept // what lies in the name's folder, by leaf
}

// kept is a key as it was seen.
type kept struct {
	mod     int64 // revision of its last change; 0 when there is none
	lease   clientv3.LeaseID
	seconds int64 // of a vote: what its lease was granted for
	text    string
}

// reads are the operations whose answers make a sight. A request that concerns
// the record alone has no name.
func (s *Store) reads(name string) []clientv3.Op {
	ops := []clientv3.Op{clientv3.OpGet(s.recordKey()), clientv3.OpGet(s.quarantineKey())}
	if name != "" {
		ops = append(ops, clientv3.OpGet(s.folder(name), clientv3.WithPrefix()))
	}
	return ops
}

// look reads a sight, which changes nothing. The read is linearizable: a member
// that lags behind, or that leads no more, is never believed.
func (s *Store) look(ctx context.Context, name string) (*sight, error) {
	known := s.revision.Load()
	reply, err := s.client().Txn(ctx).Then(s.reads(name)...).Commit()
	if err != nil {
		return nil, err
	}
	s.hear(known, reply.Header.Revision)
	return s.parse(name, reply)
}

// parse makes a sight of the answers to reads.
func (s *Store) parse(name string, reply *clientv3.TxnResponse) (*sight, error) {
	v := &sight{
		revision: reply.Header.Revision,
		server:   strconv.FormatUint(reply.Header.ClusterId, 16),
		kept:     map[string]kept{},
	}
	for _, kv := range rangeOf(reply.Responses[0]) {
		var err error
		if v.record, v.quarantine, err = parseRecord(kv.Value); err != nil {
			return nil, s.unreadable(kv, err)
		}
		v.recordMod = kv.ModRevision
	}
	v.over = true
	for _, kv := range rangeOf(reply.Responses[1]) {
		v.over = kv.Lease != v.quarantine // else the mark of an earlier one
	}
	if name == "" {
		return v, nil
	}
	var t tally
	for _, kv := range rangeOf(reply.Responses[2]) {
		leaf := strings.TrimPrefix(string(kv.Key), s.folder(name))
		if err := v.take(leaf, kv, &t); err != nil {
			return nil, s.unreadable(kv, err)
		}
	}
	v.settle(t)
	return v, nil
}

func rangeOf(r *etcdserverpb.ResponseOp) []*mvccpb.KeyValue { return r.GetResponseRange().Kvs }

func (s *Store) unreadable(kv *mvccpb.KeyValue, err error) error {
	return fmt.Errorf("the key %q cannot be read: %w; another version of this package, or a person, wrote it: "+
		"use another prefix or server", kv.Key, err)
}

// take adds one key of the name's folder.
func (v *sight) take(leaf string, kv *mvccpb.KeyValue, t *tally) (err error) {
	k := kept{mod: kv.ModRevision, lease: clientv3.LeaseID(kv.Lease), text: string(kv.Value)}
	n := &v.name
	kind, id, _ := strings.Cut(leaf, "/")
	switch kind {
	case countLeaf:
		*t, err = parseTally(kv.Value)
		n.Known = true
	case voteLeaf, "read":
		vote, seconds, wrong := parseVote(kv.Value)
		if kind == "read" {
			vote.Mode = core.Shared
		}
		k.seconds, err = seconds, wrong
		n.Votes = append(n.Votes, vote)
	case queueLeaf:
		_, err = waitlist.Parse(k.text)
	case "tomb":
		tomb := model.Tomb{}
		if tomb.ID, err = parseID(id); err == nil {
			tomb.Attempt, err = parseTomb(kv.Value)
		}
		n.Tombs = append(n.Tombs, tomb)
	case "forced":
		forced := model.Forced{}
		if forced.ID, err = parseID(id); err == nil {
			forced.Label, err = parseForced(kv.Value)
		}
		n.Forced = append(n.Forced, forced)
	}
	v.kept[leaf] = k
	return err
}

func parseID(text string) (core.ID, error) {
	f := &fields{rest: text}
	return f.id(), f.err
}

// settle puts in order what was taken, and reads off the tally how the last
// holder ended: one that neither released nor stands let its lease run out.
func (v *sight) settle(t tally) {
	n := &v.name
	slices.SortFunc(n.Votes, func(a, b model.Vote) int { return slices.Compare(a.Owner.ID[:], b.Owner.ID[:]) })
	n.Counter, n.Writer, n.Last, v.held = t.counter, t.writer, t.last, t.held
	if v.held && len(n.Votes) == 0 {
		n.Last = core.PreviousExpired
	}
}

// vote returns the vote of any attempt of id and where it is kept.
func (v *sight) vote(id core.ID) (vote *model.Vote, leaf string) {
	for i := range v.name.Votes {
		if vote := &v.name.Votes[i]; vote.Owner.ID == id {
			return vote, voteLeafOf(id, vote.Mode)
		}
	}
	return nil, ""
}

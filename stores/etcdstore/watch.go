package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/waitlist"
)

// Watch implements [quorum.Watcher]. It tells of votes that are deleted, by
// their owner, by the end of their lease, by force or by hand. All watches of
// one client share one stream. A cluster that has no leader ends it.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	if err := check(core.Release, &r); err != nil {
		return s.unsent(err)
	}
	if err := s.watch(ctx, &r, tell); err != nil && ctx.Err() == nil {
		return fmt.Errorf("etcd store %s: watch %q: %w", s.name, r.Key, err)
	}
	return nil
}

func (s *Store) watch(ctx context.Context, r *quorum.Request, tell func(quorum.Wake)) error {
	if err := s.connected(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
	defer cancel() // takes the watch off the stream
	folder := s.folder(r.Key)
	for reply := range s.client().Watch(ctx, folder, clientv3.WithPrefix(), clientv3.WithPrevKV(), clientv3.WithCreatedNotify()) {
		switch {
		case reply.Err() != nil: // also where what happened since a broken connection was compacted
			return explain(reply.Err())
		case reply.Created:
			tell(quorum.Wake{Kind: quorum.WakeStarted})
		}
		turned(reply.Events, folder, tell)
		if ended(reply.Events, folder) {
			tell(quorum.Wake{Kind: quorum.WakeChanged})
		}
	}
	return errors.New("the watch ended")
}

// turned tells whose turn has come, and who is next after those: what changed in
// a queue. Whoever was told by an answer knows.
func turned(events []*clientv3.Event, folder string, tell func(quorum.Wake)) {
	for _, e := range events {
		if string(e.Kv.Key) != folder+queueLeaf || e.Type == clientv3.EventTypeDelete {
			continue
		}
		had := map[core.ID]bool{}
		if e.PrevKv != nil {
			before, _ := waitlist.Parse(string(e.PrevKv.Value))
			for _, w := range before {
				had[w.Owner.ID] = w.Turn != waitlist.None
			}
		}
		told, claim := false, time.Duration(0)
		all, _ := waitlist.Parse(string(e.Kv.Value))
		for _, w := range all {
			wake := quorum.Wake{Owner: quorum.Owner{ID: quorum.OwnerID(w.Owner.ID)}.Digest()}
			if w.Turn == waitlist.None {
				if wake.Kind, wake.After = quorum.WakeNext, claim; told {
					tell(wake)
				}
				break
			}
			claim = w.Claim
			if counter, is := w.Told(); is && !had[w.Owner.ID] {
				wake.Kind, wake.Counter = quorum.WakeTurn, counter
				told = true
				tell(wake)
			}
		}
	}
}

// ended reports whether a vote ended among the events of one folder.
func ended(events []*clientv3.Event, folder string) bool {
	for _, e := range events {
		leaf := strings.TrimPrefix(string(e.Kv.Key), folder)
		if leaf != voteLeaf && !strings.HasPrefix(leaf, readLeaf) {
			continue
		}
		if e.Type == clientv3.EventTypeDelete || replaced(e) {
			return true
		}
	}
	return false
}

// replaced reports whether one owner's vote was put in the place of another's.
func replaced(e *clientv3.Event) bool {
	if e.PrevKv == nil {
		return false
	}
	old, _, err := parseVote(e.PrevKv.Value)
	now, _, wrong := parseVote(e.Kv.Value)
	return err == nil && wrong == nil && old.Owner.ID != now.Owner.ID
}

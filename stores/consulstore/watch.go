package consulstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
)

// watchTime is how long a blocking query waits at most; the server adds a
// sixteenth. It is asked again then.
const watchTime = 5 * time.Minute

// farTime is how long who stands behind others waits for its bell alone, in
// case those before it died together. One that died alone is seen by the next.
const farTime = 5 * time.Second

// Watch implements [quorum.Watcher] by a blocking query, one at a time: of the
// name's votes or, while all who wait for it by this client stand behind
// others, of their bell. It needs no mark in the store. Each watch has a
// connection of its own, unless the client speaks HTTP/2; an agent takes 200 of
// one address by default, see http_max_conns_per_client.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	w := &watch{Store: s, key: r.Key, tell: tell}
	err := w.run(ctx)
	if ctx.Err() != nil {
		return nil
	}
	err, _ = explain(err)
	return fmt.Errorf("consul store %s: watch %q: %w", s.name, r.Key, err)
}

type watch struct {
	*Store
	key  string
	tell func(quorum.Wake)

	votes   map[string]bool // as seen last, true for a writer's
	votesAt uint64          // the index then
	token   int64           // the highest that was seen of a vote
	bell    bell
	bellAt  uint64
}

func (w *watch) run(ctx context.Context) error {
	if _, err := w.look(ctx); err != nil {
		return err
	}
	w.tell(quorum.Wake{Kind: quorum.WakeStarted})
	w.learn()
	for {
		step := w.atVotes
		if w.bell.far() && !w.ours() || len(w.votes) == 0 && (len(w.bell) > 1 || w.bell.stands(nextBell) || w.bell.stands(firstBell)) {
			step = w.atBell
		}
		ended, err := step(ctx)
		if err != nil {
			return err
		}
		if ended {
			w.tell(quorum.Wake{Kind: quorum.WakeChanged})
		}
	}
}

// ours reports whether a writer of this client holds the name: it is to hear at
// once that its vote is gone, and nobody's turn comes before that.
func (w *watch) ours() bool {
	w.holds.mu.Lock()
	defer w.holds.mu.Unlock()
	for of, h := range w.holds.all {
		if of.key == w.key && w.votes[w.prefix+nameFolder(w.key)+votePart+h.of.id] {
			return true
		}
	}
	return false
}

// atVotes waits for a change of the votes. Where the last one ended, the first in
// line is told its turn, with the token that was seen: its bell will say so too,
// but later.
func (w *watch) atVotes(ctx context.Context) (ended bool, err error) {
	next := w.bell.stands(nextBell)
	ended, err = w.look(ctx)
	w.learn() // who fell in line since may stand behind
	if free := ended && len(w.votes) == 0 && w.token > 0; free && (next || w.bell.stands(firstBell)) {
		w.come()
	}
	return ended, err
}

// atBell waits for the bell, while all stand behind others, or while the name is
// free and the turn that of one before. Now and then it looks whether it waits
// in vain, since those before died.
func (w *watch) atBell(ctx context.Context) (ended bool, err error) {
	was := w.bellAt
	if err := w.hear(ctx); err != nil || w.bell.far() && w.bellAt != was {
		return false, err
	}
	w.votesAt = 0
	_, err = w.look(ctx)
	if ended = err == nil && len(w.votes) == 0; ended && w.token > 0 && w.bell.stands(firstBell) {
		w.come()
	}
	return ended, err
}

// come tells the first in line that its turn has come.
func (w *watch) come() {
	for owner := range w.bell {
		if one := (bell{owner: w.bell[owner]}); one.stands(firstBell) || one.stands(nextBell) {
			come := bell{owner: turnBell + " " + strconv.FormatInt(w.token, 10)}
			come.tell(nil, w.tell)
			w.bell[owner] = come[owner]
		}
	}
}

// look waits until other votes are there than at the last look, if there was
// one, and reports whether one ended.
func (w *watch) look(ctx context.Context) (ended bool, err error) {
	pairs, meta, err := w.client.KV().List(w.prefix+nameFolder(w.key)+votePart, w.since(ctx, w.votesAt, watchTime))
	if err != nil {
		return false, err
	}
	now := map[string]bool{}
	for _, pair := range pairs {
		var v voteValue
		if decode(pair.Key, pair.Value, &v) == nil {
			w.token = max(w.token, v.Token)
		}
		now[pair.Key] = !v.Shared
	}
	for vote := range w.votes {
		_, stands := now[vote]
		ended = ended || !stands
	}
	at := next(w.votesAt, meta)
	ended = ended || len(now) == 0 && w.votesAt > 0 && at != w.votesAt // one came and went
	w.votes, w.votesAt = now, at
	return ended, nil
}

// hear waits until the bell of this client is rung, and tells what is new.
func (w *watch) hear(ctx context.Context) error {
	pair, meta, err := w.client.KV().Get(w.prefix+bellFolder(w.key)+w.self, w.since(ctx, w.bellAt, farTime))
	if err != nil {
		return err
	}
	now := rung{index: next(w.bellAt, meta)}
	if pair != nil {
		now.value = string(pair.Value)
	}
	w.bells.note(w.key, now)
	w.take(now)
	return nil
}

// learn takes what calls of this client know of its bell by now.
func (w *watch) learn() {
	if now, ok := w.bells.known(w.key); ok && now.index > w.bellAt {
		w.take(now)
	}
}

func (w *watch) take(now rung) {
	b := readBell(now.value)
	b.tell(w.bell, w.tell)
	w.bell, w.bellAt = b, now.index
}

func (s *Store) since(ctx context.Context, index uint64, most time.Duration) *api.QueryOptions {
	return (&api.QueryOptions{Datacenter: s.datacenter, WaitTime: most, WaitIndex: index}).WithContext(ctx)
}

// next is the index to wait after. One that fell, as after a restored backup,
// begins anew; below 1 a query would not block.
func next(index uint64, meta *api.QueryMeta) uint64 {
	if meta.LastIndex < index {
		return 0
	}
	return max(meta.LastIndex, 1)
}

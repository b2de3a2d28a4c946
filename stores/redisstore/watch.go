package redisstore

import (
	"context"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
)

// Watch implements [quorum.Watcher]. All watches of the store share one
// connection, which is made again when it breaks; then what may have been missed
// is told as a change. The server tells of what happens after an Acquire with
// [quorum.WaitWatch] was refused, and of a vote that is deleted by hand where
// notify-keyspace-events holds K and g, which a cluster cannot tell.
func (s *Store) Watch(ctx context.Context, r quorum.Request, tell func(quorum.Wake)) error {
	if err := s.check(watch, &r); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return nil
	}
	tag := s.part(r.Key).tag
	names := []string{tag + ":wake:" + r.Key}
	if s.cluster == nil {
		names = append(names, s.notices+tag+":vote:"+r.Key)
	}
	w := &watcher{tell: tell, ended: make(chan error, 1)}
	if !s.hub.join(s.client, names, w) {
		return s.wrap(watch, r.Key, redis.ErrClosed)
	}
	defer s.hub.leave(names, w)
	select {
	case <-ctx.Done():
		return nil
	case err := <-w.ended:
		return s.wrap(watch, r.Key, err)
	}
}

// watcher is one Watch.
type watcher struct {
	tell  func(quorum.Wake)
	ended chan error // holds one
}

// keyspace begins the channels on which a server itself tells of its keys.
const keyspace = "__keyspace@"

// channelOf says where a waiter for a name is to be told its turn: on the own
// channel, so that the server sees whether its process still listens, or on the
// name's where nobody here does.
func (h *hub) channelOf(name string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if t := h.topics[name]; t != nil && t.stands && h.stands {
		return h.own
	}
	return none
}

// parse reads what a script published: "changed", "turn OWNER counter" or "next
// OWNER microseconds", on a store's own channel with the name's behind it; or the
// server's own notice of a key: "del".
func parse(text string) (wake quorum.Wake, name string, ok bool) {
	words := strings.SplitN(text, " ", 4)
	if text == "changed" || text == "del" {
		return quorum.Wake{Kind: quorum.WakeChanged}, "", true
	}
	if len(words) < 3 {
		return quorum.Wake{}, "", false
	}
	n, err := strconv.ParseInt(words[2], 10, 64)
	wake.Owner = digest(words[1])
	switch words[0] {
	case "turn":
		wake.Kind, wake.Counter = quorum.WakeTurn, n
	case "next":
		wake.Kind, wake.After = quorum.WakeNext, time.Duration(n)*time.Microsecond
	default:
		return quorum.Wake{}, "", false
	}
	if len(words) > 3 {
		name = words[3]
	}
	return wake, name, err == nil
}

// digest turns a stored owner into what may be shown.
func digest(owner string) string {
	var o quorum.Owner
	if n, err := hex.Decode(o.ID[:], []byte(owner)); err != nil || n != len(o.ID) {
		return ""
	}
	return o.Digest()
}

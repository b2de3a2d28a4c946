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

// parse reads what a script published: "changed", "turn OWNER counter" or "next
// OWNER microseconds"; or the server's own notice of a key: "del".
func parse(text string) (quorum.Wake, bool) {
	kind, rest, _ := strings.Cut(text, " ")
	owner, number, _ := strings.Cut(rest, " ")
	n, _ := strconv.ParseInt(number, 10, 64)
	switch kind {
	case "changed", "del":
		return quorum.Wake{Kind: quorum.WakeChanged}, true
	case "turn":
		return quorum.Wake{Kind: quorum.WakeTurn, Owner: digest(owner), Counter: n}, true
	case "next":
		return quorum.Wake{Kind: quorum.WakeNext, Owner: digest(owner), After: time.Duration(n) * time.Microsecond}, true
	}
	return quorum.Wake{}, false
}

// digest turns a stored owner into what may be shown.
func digest(owner string) string {
	var o quorum.Owner
	if n, err := hex.Decode(o.ID[:], []byte(owner)); err != nil || n != len(o.ID) {
		return ""
	}
	return o.Digest()
}

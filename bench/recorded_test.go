//go:build unix

package bench

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// recordedKey is the name of the lock whose commands were recorded.
const recordedKey = "a name that stands for another"

// recorded is what one server was sent for one lock, and the name of the script
// that calls can share.
type recorded struct {
	sent  [2]command
	batch string
}

const (
	acquiring = iota
	releasing
)

// command is a call of a script, cut where key and owner stand.
type command struct {
	script string
	rest   []pieces // what follows the name
}

// pieces is one argument: what stands before the owner, between it and the key,
// and behind.
type pieces struct {
	before, between, behind string
	owned, keyed            bool
}

func cut(args []any, owner string) command {
	c := command{script: args[1].(string)}
	for _, a := range args[2:] {
		text := fmt.Sprint(a)
		var p pieces
		if before, rest, ok := strings.Cut(text, owner); ok {
			p.before, p.owned, text = before, true, rest
		}
		p.between, p.behind, p.keyed = strings.Cut(text, recordedKey)
		c.rest = append(c.rest, p)
	}
	return c
}

// of returns the arguments behind the script's name, for another lock.
func (c command) of(key, owner string) []any {
	args := make([]any, len(c.rest))
	for i, p := range c.rest {
		var o, k string
		if p.owned {
			o = owner
		}
		if p.keyed {
			k = key
		}
		args[i] = p.before + o + p.between + k + p.behind
	}
	return args
}

// recorded takes one lock by quorum and notes what each server was sent.
func (s *servers) recorded() []recorded {
	s.tb.Helper()
	out := make([]recorded, len(s.addrs))
	var members []quorum.Store
	var notes []*recorder
	for i, addr := range s.addrs {
		note := &recorder{}
		c := s.client(tuned(addr))
		c.AddHook(note)
		m, err := redisstore.New(fmt.Sprint("node", i), c)
		if err != nil {
			s.tb.Fatal(err)
		}
		members, notes = append(members, m), append(notes, note)
	}
	set, err := quorum.Combine(quorum.Consensus(), members...)
	if err != nil {
		s.tb.Fatal(err)
	}
	l := s.declared(set, quorum.AskOrder(quorum.AllAtOnce))
	for range 20 { // a server that was late gets another kind of request, and the scripts are loaded first
		lease, err := l.Acquire(s.tb.Context(), recordedKey)
		if err == nil {
			err = lease.Release(s.tb.Context())
		}
		if err != nil {
			s.tb.Fatal(err)
		}
	}
	if err := l.Close(s.tb.Context()); err != nil {
		s.tb.Fatal(err)
	}
	for i, n := range notes {
		var ok bool
		if out[i], ok = n.cycle(); !ok {
			s.tb.Fatalf("server %d was sent no acquire, no release of it or no script to share: %q", i, n.sent)
		}
	}
	return out
}

// recorder is a hook of go-redis that keeps the scripts which were called.
type recorder struct {
	mu    sync.Mutex
	sent  [][]any
	batch string
}

// cycle picks the last acquire and its owner's last release. The packed argument
// tells them apart: a new vote of a writer begins with the letters nw, a release
// has three fields.
func (r *recorder) cycle() (last recorded, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last.batch = r.batch
	var acquire, release []any
	owner := ""
	for _, args := range r.sent {
		packed := strings.Fields(args[len(args)-1].(string))
		switch {
		case strings.HasPrefix(packed[0], "nw"):
			acquire, owner = args, packed[0][len("nw?"):] // the third letter is how it waits
		case len(packed) == 3 && packed[0] == owner:
			release = args
		}
	}
	if acquire == nil || release == nil || last.batch == "" {
		return last, false
	}
	last.sent = [2]command{cut(acquire, owner), cut(release, owner)}
	return last, true
}

func (r *recorder) note(cmds ...redis.Cmder) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range cmds {
		if text, ok := c.Args()[len(c.Args())-1].(string); ok && c.Name() == "script" && strings.Contains(text, "-- Batch:") {
			sum := sha1.Sum([]byte(text))
			r.batch = hex.EncodeToString(sum[:])
		}
		if c.Name() != "evalsha" {
			continue
		}
		var args []any
		for _, a := range c.Args() {
			if p, ok := a.(*string); ok {
				a = *p
			}
			args = append(args, a)
		}
		r.sent = append(r.sent, args)
	}
}

func (r *recorder) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (r *recorder) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error { r.note(c); return next(ctx, c) }
}

func (r *recorder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { r.note(cmds...); return next(ctx, cmds) }
}

//go:build unix

package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// limit is what servers and client can do at best: the very commands that quorum
// sends, to all servers at once, by the same client, with no protocol around
// them. Of each server one goroutine sends what waits for it in one pipeline, 64
// calls in a script as quorum's store does, and whoever sent waits until all
// servers have answered. Each lock has a name and a random owner of its own, as
// those of any library have: a server that meets the same texts again and again
// has less to do.
var limit = row{name: "limit", commands: []string{"evalsha", "eval"}, open: func(s *servers) locks {
	l := &limitLocks{}
	for i, v := range s.recorded() {
		n := &limitNode{client: s.client(tuned(s.addrs[i])), recorded: v, wake: make(chan struct{}, 1)}
		l.nodes = append(l.nodes, n)
		done := make(chan struct{})
		go func() { defer close(done); n.send() }()
		s.tb.Cleanup(func() { close(n.wake); <-done })
	}
	return l
}}

// recordedKey is the name of the lock whose commands were recorded.
const recordedKey = "a name that stands for another"

// recorded is what one server was sent for one lock, whose it was, and the name
// of the script that calls can share.
type recorded struct {
	acquire, release []any
	owner            string // in hexadecimal digits
	batch            string
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
		out[i] = n.cycle()
		if out[i].acquire == nil || out[i].release == nil || out[i].batch == "" {
			s.tb.Fatalf("server %d was sent no acquire, no release or no script to share: %q", i, n.sent)
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

// cycle picks the last acquire and the last release. The packed argument tells
// them apart: a new vote of a writer begins with the letters nw, a release has three
// fields.
func (r *recorder) cycle() (last recorded) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, args := range r.sent {
		packed := strings.Fields(args[len(args)-1].(string))
		switch {
		case strings.HasPrefix(packed[0], "nw"):
			last.acquire, last.owner = args, packed[0][3:]
		case len(packed) == 3:
			last.release = args
		}
	}
	last.batch = r.batch
	return last
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

type limitLocks struct{ nodes []*limitNode }

func (l *limitLocks) acquire(ctx context.Context, key string) (held, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	h := limitHeld{l, key, hex.EncodeToString(id[:])}
	return h, h.all(ctx, func(n *limitNode) []any { return n.acquire })
}

type limitHeld struct {
	*limitLocks
	key, owner string
}

func (h limitHeld) Release(ctx context.Context) error {
	return h.all(ctx, func(n *limitNode) []any { return n.release })
}

// all sends every server its command for the lock, and waits for the answers.
func (h limitHeld) all(ctx context.Context, of func(*limitNode) []any) error {
	var answered sync.WaitGroup
	answered.Add(len(h.nodes))
	cmds := make([]*redis.Cmd, len(h.nodes))
	var text [8]any // the same to all servers, but for the script's name
	for i, n := range h.nodes {
		args := of(n)
		if i == 0 {
			for j, a := range args {
				if s, ok := a.(string); ok {
					a = strings.Replace(strings.Replace(s, recordedKey, h.key, 1), n.owner, h.owner, 1)
				}
				text[j] = a
			}
		}
		mine := append(make([]any, 0, len(args)), text[:len(args)]...)
		mine[1] = args[1]
		cmds[i] = redis.NewCmd(ctx, mine...)
		n.put(limitCall{cmds[i], &answered})
	}
	answered.Wait()
	for _, c := range cmds {
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
	}
	return nil
}

// limitNode is one server and what waits to be sent to it.
type limitNode struct {
	recorded
	client  *redis.Client
	wake    chan struct{}
	mu      sync.Mutex
	waiting []limitCall
}

type limitCall struct {
	cmd      *redis.Cmd
	answered *sync.WaitGroup
}

func (n *limitNode) put(c limitCall) {
	n.mu.Lock()
	n.waiting = append(n.waiting, c)
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// send sends until wake is closed.
func (n *limitNode) send() {
	var batch []limitCall
	for range n.wake {
		n.mu.Lock()
		batch, n.waiting = n.waiting, batch[:0]
		n.mu.Unlock()
		if len(batch) == 0 {
			continue
		}
		if rest := n.trip(batch, true); len(rest) > 0 {
			n.trip(rest, false)
		}
		for _, c := range batch {
			c.answered.Done()
		}
	}
}

// trip sends calls in one round trip, and returns those for which a shared script
// did nothing.
func (n *limitNode) trip(calls []limitCall, share bool) (rest []limitCall) {
	ctx, pipe := context.Background(), n.client.Pipeline()
	var shared []*redis.StringCmd
	const load = 64
	for some := range slices.Chunk(calls, load) {
		if share && len(some) > 1 {
			shared = append(shared, redis.NewStringCmd(ctx, n.bundle(some)...))
			_ = pipe.Process(ctx, shared[len(shared)-1])
			continue
		}
		for _, c := range some {
			_ = pipe.Process(ctx, c.cmd)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has its own error
	for i, cmd := range shared {
		text, err := cmd.Result()
		for _, c := range calls[i*load : min((i+1)*load, len(calls))] {
			var line string
			line, text, _ = strings.Cut(text, "\n")
			switch {
			case err != nil:
				c.cmd.SetErr(err)
			case line == "":
				rest = append(rest, c)
			default:
				c.cmd.SetVal(line)
			}
		}
	}
	return rest
}

// bundle is the script that calls share: the record's key, theirs, the letters of
// their verbs, and what each sent packed.
func (n *limitNode) bundle(calls []limitCall) []any {
	args, letters := []any{"evalsha", n.batch, 0, calls[0].cmd.Args()[3]}, ""
	for _, c := range calls {
		one := c.cmd.Args()
		args = append(args, one[4:len(one)-1]...)
		if strings.HasPrefix(one[len(one)-1].(string), "nw") {
			letters += "a"
		} else {
			letters += "r"
		}
	}
	args[2] = len(args) - 3
	args = append(args, letters)
	for _, c := range calls {
		one := c.cmd.Args()
		args = append(args, one[len(one)-1])
	}
	return args
}

//go:build unix

package bench

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
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

type limitLocks struct{ nodes []*limitNode }

func (l *limitLocks) acquire(ctx context.Context, key string) (held, error) {
	var id [16]byte
	if _, err := rand.Read(id[:]); err != nil {
		return nil, err
	}
	h := limitHeld{l, key, hex.EncodeToString(id[:])}
	return h, h.all(ctx, acquiring)
}

type limitHeld struct {
	*limitLocks
	key, owner string
}

func (h limitHeld) Release(ctx context.Context) error { return h.all(ctx, releasing) }

// all sends every server its command for the lock, and waits for the answers.
func (h limitHeld) all(ctx context.Context, what int) error {
	var answered sync.WaitGroup
	answered.Add(len(h.nodes))
	cmds := make([]*redis.Cmd, len(h.nodes))
	texts := h.nodes[0].sent[what].of(h.key, h.owner) // the same to all servers, but for the script's name
	for i, n := range h.nodes {
		args := append(make([]any, 0, 2+len(texts)), "evalsha", n.sent[what].script)
		cmds[i] = redis.NewCmd(ctx, append(args, texts...)...)
		n.put(limitCall{cmds[i], &answered})
	}
	answered.Wait()
	for _, c := range cmds {
		switch v, err := c.Result(); {
		case err != nil:
			return err
		case v != any(int64(1)) && v != any("1") && what == releasing:
			return fmt.Errorf("a release was answered %v", v)
		case what == acquiring:
			if _, ok := v.(string); !ok {
				return fmt.Errorf("an acquire was answered %v", v)
			}
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

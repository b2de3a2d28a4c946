package main

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
)

// node is one embedded server that speaks the Redis protocol on loopback. It
// keeps nothing over a restart, as a Redis without persistence.
type node struct {
	addr    string
	server  *miniredis.Miniredis // nil while it is down
	starts  int
	changed time.Time // when it was killed or restarted last
}

// start begins a new life of the node: no data, no scripts, another run id.
func (n *node) start() error {
	n.starts++
	id := rand.Text()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	err := m.StartAddr(n.addr)
	if err != nil {
		return fmt.Errorf("start a node of the demo: %w", err)
	}
	// miniredis has no such INFO, and a store must see that its node restarted.
	// Version 6.2, since it does not read the flags of scripts for 7.0.
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		if cmd != "INFO" {
			return false
		}
		c.WriteBulk("# Server\r\nredis_version:6.2.0\r\nredis_mode:standalone\r\nrun_id:" + id + "\r\n" +
			"# Replication\r\nrole:master\r\nmaster_replid:" + id + "\r\n")
		return true
	})
	n.server, n.addr, n.changed = m, m.Addr(), time.Now()
	return nil
}

func (n *node) stop() {
	if n.server != nil {
		n.server.Close()
		n.server, n.changed = nil, time.Now()
	}
}

// out reports whether the node is down, or may still be in quarantine.
func (n *node) out() bool {
	return n.server == nil || n.starts > 1 && time.Since(n.changed) < demoMaxTTL+500*time.Millisecond
}

// nodes are the demo's own stores. One goroutine kills and restarts them.
type nodes struct {
	list              []*node
	killed, restarted int
}

func startNodes(count int) (*nodes, error) {
	all := &nodes{}
	for range count {
		n := &node{addr: "127.0.0.1:0"}
		if err := n.start(); err != nil {
			all.close()
			return nil, err
		}
		all.list = append(all.list, n)
	}
	return all, nil
}

func (all *nodes) close() {
	for _, n := range all.list {
		n.stop()
	}
}

// dsns name the stores by letters: the ports differ from run to run.
func (all *nodes) dsns() []string {
	var dsns []string
	for i, n := range all.list {
		dsns = append(dsns, fmt.Sprintf("redis://%s/0?name=%c", n.addr, 'a'+i))
	}
	return dsns
}

// fail kills and restarts nodes until ctx ends, never so that more than a
// minority is out at once. A node is out until it has left quarantine, so what
// the others remember is enough for the tokens to go on growing.
func (all *nodes) fail(ctx context.Context, random *mathrand.Rand, show *screen) {
	for {
		pause(ctx, 200*time.Millisecond+time.Duration(random.Int64N(int64(400*time.Millisecond))))
		if ctx.Err() != nil {
			return
		}
		i := random.IntN(len(all.list))
		n := all.list[i]
		switch out := all.out(); {
		case n.server == nil:
			if err := n.start(); err != nil {
				show.event("node %c did not come back: %v", 'a'+i, err)
				continue
			}
			all.restarted++
			show.event("node %c restarted, empty", 'a'+i)
		case !n.out() && out < (len(all.list)-1)/2:
			n.stop()
			all.killed++
			show.event("node %c killed", 'a'+i)
		}
		show.nodes(all.states())
	}
}

func (all *nodes) out() int {
	count := 0
	for _, n := range all.list {
		if n.out() {
			count++
		}
	}
	return count
}

// states shows each node as one letter, a small one while it is out.
func (all *nodes) states() string {
	text := ""
	for i, n := range all.list {
		switch {
		case n.server == nil:
			text += "✗"
		case n.out():
			text += string(rune('a' + i))
		default:
			text += string(rune('A' + i))
		}
	}
	return text
}

//go:build unix

package testserver

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const slots = 16384 // of a Redis Cluster

// RedisCluster starts a Redis Cluster of n primaries with some replicas each,
// and returns once every node knows that all slots are served. Each primary
// stands before its replicas. One that is away is replaced after some seconds.
func RedisCluster(t testing.TB, n, replicas int, options ...RedisOption) []*RedisNode {
	t.Helper()
	group := 1 + replicas
	away := 1000 // milliseconds
	if replicas == 0 {
		away = 15000 // nobody takes over, and a node that is only slow must not stop the others
	}
	var all []*RedisNode
	var bus []int
	for range n * group {
		bus = append(bus, freePort(t))
		node := Redis(t, append([]RedisOption{RedisConfig(
			"cluster-enabled yes", fmt.Sprintf("cluster-port %d", bus[len(bus)-1]), fmt.Sprintf("cluster-node-timeout %d", away),
			"repl-diskless-sync-delay 0")}, options...)...)
		all = append(all, node)
	}
	for i := range n {
		all[i*group].must(fmt.Sprintf("CLUSTER ADDSLOTSRANGE %d %d", i*slots/n, (i+1)*slots/n-1))
	}
	for i, node := range all {
		node.must(fmt.Sprintf("CLUSTER SET-CONFIG-EPOCH %d", i+1))
	}
	for i, node := range all[1:] {
		all[0].must(fmt.Sprintf("CLUSTER MEET 127.0.0.1 %d %d", node.port, bus[i+1]))
	}
	for i, node := range all {
		if of := all[i-i%group]; of != node {
			order := "CLUSTER REPLICATE " + of.must("CLUSTER MYID")
			node.poll(order, func(reply string) bool { return reply == "+OK" })
			node.poll("INFO replication", func(reply string) bool { return strings.Contains(reply, "master_link_status:up") })
		}
	}
	for _, node := range all {
		node.poll("CLUSTER INFO", func(reply string) bool {
			return strings.Contains(reply, "cluster_state:ok") &&
				strings.Contains(reply, fmt.Sprintf("cluster_known_nodes:%d", len(all)))
		})
	}
	return all
}

// must sends one line, which may not fail.
func (n *RedisNode) must(line string) string {
	n.t.Helper()
	reply, err := n.ask(line)
	if err != nil || strings.HasPrefix(reply, "-") {
		n.t.Fatalf("%s: %s answered %q (%v)", n.name, line, reply, err)
	}
	return reply
}

// poll sends one line until the reply is good.
func (n *RedisNode) poll(line string, good func(reply string) bool) {
	n.t.Helper()
	var reply string
	var err error
	for end := time.Now().Add(startLimit); time.Now().Before(end); <-time.After(pollEvery) {
		if reply, err = n.ask(line); err == nil && good(reply) {
			return
		}
	}
	n.t.Fatalf("%s: %s still answers %q (%v) after %v", n.name, line, reply, err, startLimit)
}

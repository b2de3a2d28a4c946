//go:build unix

package testserver

import (
	"net"
	"strings"
	"testing"
	"time"
)

// ask returns the first line of the answer, or of a bulk string its text.
func ask(t *testing.T, n *RedisNode, line string) string {
	t.Helper()
	reply, err := n.ask(line)
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return reply
}

func TestRedisKeepsNothingByDefault(t *testing.T) {
	n := Redis(t)
	if got := ask(t, n, "SET a b"); got != "+OK" {
		t.Fatalf("SET answered %q", got)
	}
	n.Stop()
	if _, err := n.ask("PING"); err == nil {
		t.Fatal("a stopped server answered")
	}
	before := n.Addr
	n.Restart()
	if n.Addr != before {
		t.Errorf("address moved from %s to %s", before, n.Addr)
	}
	if got := ask(t, n, "EXISTS a"); got != ":0" {
		t.Errorf("EXISTS after kill -9 answered %q, want :0", got)
	}
}

func TestRedisKeepsOrEmptiesItsDisk(t *testing.T) {
	n := Redis(t, RedisConfig("appendonly yes", "appendfsync always"))
	ask(t, n, "SET a b")
	n.Stop()
	n.Restart()
	if got := ask(t, n, "EXISTS a"); got != ":1" {
		t.Errorf("EXISTS after a restart with AOF answered %q, want :1", got)
	}
	n.RestartEmpty()
	if got := ask(t, n, "EXISTS a"); got != ":0" {
		t.Errorf("EXISTS after an empty restart answered %q, want :0", got)
	}
}

func TestRedisTerminateSaves(t *testing.T) {
	n := Redis(t, RedisConfig("save 3600 1"))
	ask(t, n, "SET a b")
	n.Terminate()
	n.Restart()
	if got := ask(t, n, "EXISTS a"); got != ":1" {
		t.Errorf("EXISTS after SIGTERM answered %q, want :1", got)
	}
}

func TestRedisStalls(t *testing.T) {
	n := Redis(t)
	n.Stall()
	if reply, err := n.ask("PING"); err == nil {
		t.Fatalf("a stalled server answered %q", reply)
	}
	n.Resume()
	if got := ask(t, n, "PING"); got != "+PONG" {
		t.Errorf("PING answered %q", got)
	}
	n.Stall() // a stalled server must not hold up the cleanup
}

func TestRedisWithPasswordIsReady(t *testing.T) {
	n := Redis(t, RedisConfig("requirepass secret"))
	if got := ask(t, n, "GET a"); !strings.HasPrefix(got, "-NOAUTH") {
		t.Errorf("GET without a password answered %q", got)
	}
}

func TestRedisReplicaAndSentinel(t *testing.T) {
	primary := Redis(t)
	replica := Redis(t, ReplicaOf(primary))
	sentinel := Redis(t, Sentinel("main", primary, 1, 5*time.Second))
	if got := ask(t, replica, "SET a b"); !strings.HasPrefix(got, "-READONLY") {
		t.Errorf("SET on a replica answered %q", got)
	}
	if got := ask(t, sentinel, "SENTINEL CKQUORUM main"); !strings.HasPrefix(got, "+OK") {
		t.Errorf("SENTINEL CKQUORUM answered %q", got)
	}
}

func TestStartFailureShowsTheLog(t *testing.T) {
	n := Redis(t)
	n.Stop()
	taken, err := net.Listen("tcp", n.Addr) // a listener that never answers
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	err = n.start()
	if err == nil || !strings.Contains(err.Error(), "Address already in use") {
		t.Errorf("start on a taken port: %v", err)
	}
}

func TestRedisClusterServesAllSlots(t *testing.T) {
	nodes := RedisCluster(t, 3, 1)
	if len(nodes) != 6 {
		t.Fatalf("%d nodes, want 3 primaries and 3 replicas", len(nodes))
	}
	for i, node := range nodes {
		info := node.must("INFO replication")
		want := "role:master"
		if i%2 == 1 {
			want = "role:slave"
		}
		if !strings.Contains(info, want) {
			t.Errorf("node %d: %s", i, info)
		}
	}
}

//go:build unix

package testserver

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// RedisNode is one redis-server. It is used by one goroutine at a time.
type RedisNode struct {
	// Addr is its host and port. It stays the same over restarts.
	Addr string
	// TLSAddr is where it serves over TLS too, with [RedisTLS].
	TLSAddr string

	process
	port    int
	dir     string // redis.conf, redis.log and data/
	options redisOptions
}

type redisOptions struct {
	config   []string
	env      []string
	sentinel bool
	tls      bool
}

// RedisOption is a setting of [Redis].
type RedisOption func(*redisOptions)

// RedisConfig adds lines of redis.conf, such as "appendonly yes", "appendfsync
// always", "requirepass secret" or "maxmemory 2mb". By default a node keeps
// nothing on disk.
func RedisConfig(lines ...string) RedisOption {
	return func(o *redisOptions) { o.config = append(o.config, lines...) }
}

// RedisEnv adds environment variables in the form "NAME=value".
func RedisEnv(vars ...string) RedisOption {
	return func(o *redisOptions) { o.env = append(o.env, vars...) }
}

// RedisTLS has the node serve over TLS as well, with a certificate that vouches
// for itself.
func RedisTLS() RedisOption { return func(o *redisOptions) { o.tls = true } }

// ReplicaOf makes the node a replica of primary.
func ReplicaOf(primary *RedisNode) RedisOption {
	return RedisConfig(fmt.Sprintf("replicaof 127.0.0.1 %d", primary.port))
}

// Sentinel makes the node a sentinel that watches primary under a name; quorum
// sentinels must agree that it is down, which takes downAfter without an answer.
func Sentinel(name string, primary *RedisNode, quorum int, downAfter time.Duration) RedisOption {
	return func(o *redisOptions) {
		o.sentinel = true
		o.config = append(o.config,
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", name, primary.port, quorum),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", name, downAfter.Milliseconds()))
	}
}

// Redis starts a redis-server that lives until the test ends. It fails the
// test when redis-server is missing or does not serve.
func Redis(t testing.TB, options ...RedisOption) *RedisNode {
	t.Helper()
	program := find(t, "redis-server", "apt-get install -y redis-server")
	n := &RedisNode{dir: t.TempDir()}
	for _, option := range options {
		option(&n.options)
	}
	conf := filepath.Join(n.dir, "redis.conf")
	n.process = process{
		t: t, name: "redis-server", log: filepath.Join(n.dir, "redis.log"),
		command: func() *exec.Cmd {
			cmd := exec.Command(program, conf)
			if n.options.sentinel {
				cmd.Args = append(cmd.Args, "--sentinel")
			}
			cmd.Env = append(os.Environ(), n.options.env...)
			return cmd
		},
		ready: n.ping,
	}
	t.Cleanup(func() { n.end(syscall.SIGKILL) })
	var err error
	for range 5 { // another process may take the port first
		n.port = freePort(t)
		n.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port))
		n.name = "redis-server on " + n.Addr
		if n.options.tls {
			n.TLSAddr = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
		}
		n.fresh()
		if err = n.start(); err == nil {
			return n
		}
		if !strings.Contains(n.tail(), "Address already in use") {
			break
		}
	}
	t.Fatal(err)
	return nil
}

// Terminate ends the server by SIGTERM, so that it saves what it is configured
// to save.
func (n *RedisNode) Terminate() {
	n.t.Helper()
	n.end(syscall.SIGTERM)
}

// RestartEmpty starts the server again at the same address with an empty disk.
// One that still runs is killed first.
func (n *RedisNode) RestartEmpty() {
	n.t.Helper()
	n.end(syscall.SIGKILL)
	n.fresh()
	if err := n.start(); err != nil {
		n.t.Fatal(err)
	}
}

// CopyDisk copies what the server has on disk now, for [RedisNode.RestartFrom].
func (n *RedisNode) CopyDisk() (disk string) {
	n.t.Helper()
	disk = n.t.TempDir()
	if err := os.CopyFS(disk, os.DirFS(filepath.Join(n.dir, "data"))); err != nil {
		n.t.Fatal(err)
	}
	return disk
}

// RestartFrom kills the server and starts it with an earlier disk: what it
// acknowledged since is lost, as when a machine loses power before a write
// reached its disk.
func (n *RedisNode) RestartFrom(disk string) {
	n.t.Helper()
	n.end(syscall.SIGKILL)
	n.fresh()
	if err := os.CopyFS(filepath.Join(n.dir, "data"), os.DirFS(disk)); err != nil {
		n.t.Fatal(err)
	}
	if err := n.start(); err != nil {
		n.t.Fatal(err)
	}
}

// fresh writes the configuration and empties the data. The configuration is a
// file, since a sentinel keeps its state in it, and a password in the arguments
// would be readable in the list of processes.
func (n *RedisNode) fresh() {
	n.t.Helper()
	data := filepath.Join(n.dir, "data")
	lines := []string{
		"bind 127.0.0.1",
		"port " + strconv.Itoa(n.port),
		"dir " + strconv.Quote(data),
		"logfile " + strconv.Quote(n.log),
	}
	if !n.options.sentinel {
		lines = append(lines, `save ""`, "appendonly no", "enable-debug-command local")
	}
	if n.options.tls {
		lines = append(lines, n.certify()...)
	}
	text := strings.Join(append(lines, n.options.config...), "\n") + "\n"
	err := errors.Join(os.RemoveAll(data), os.Mkdir(data, 0o700),
		os.WriteFile(filepath.Join(n.dir, "redis.conf"), []byte(text), 0o600))
	if err != nil {
		n.t.Fatalf("prepare the directory of a redis-server: %v", err)
	}
}

// certify writes a certificate and its key, and returns the lines of redis.conf
// that have them used.
func (n *RedisNode) certify() []string {
	n.t.Helper()
	cert, key := certificate(n.t)
	certFile, keyFile := filepath.Join(n.dir, "server.crt"), filepath.Join(n.dir, "server.key")
	if err := errors.Join(os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		n.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(n.TLSAddr)
	return []string{
		"tls-port " + port, "tls-auth-clients no", "tls-cert-file " + strconv.Quote(certFile), "tls-key-file " + strconv.Quote(keyFile),
	}
}

// ping returns nil when the server serves; one that asks for a password does.
func (n *RedisNode) ping() error {
	reply, err := n.ask("PING")
	if err != nil {
		return err
	}
	if reply != "+PONG" && !strings.HasPrefix(reply, "-NOAUTH") {
		return fmt.Errorf("PING answered %q", reply)
	}
	return nil
}

// ask sends one line on a connection of its own and returns the reply: its
// first line, or the text that it announces.
func (n *RedisNode) ask(line string) (string, error) {
	conn, err := net.DialTimeout("tcp", n.Addr, time.Second)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(line + "\r\n")); err != nil {
		return "", err
	}
	reader := bufio.NewReader(conn)
	reply, err := reader.ReadString('\n')
	var size int
	if n, _ := fmt.Sscanf(reply, "$%d", &size); n == 1 && size >= 0 {
		text := make([]byte, size)
		_, err = io.ReadFull(reader, text)
		reply = string(text)
	}
	return strings.TrimSpace(reply), err
}

//go:build unix

package testserver

import (
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

// RabbitNode is one RabbitMQ broker. It is used by one goroutine at a time.
type RabbitNode struct {
	// URL is where clients connect, with the default user. It stays the same over
	// restarts, as do durable queues.
	URL string

	process
	epmd process // Erlang's own register of nodes, without which no broker starts
	dir  string  // configuration, home, log and data
	addr string
}

// Rabbit starts a RabbitMQ broker that lives until the test ends. It has a
// register of nodes (epmd) of its own, so that it meets no other Erlang program
// and leaves none behind. The test fails when the broker is missing or does not
// serve.
func Rabbit(t testing.TB) *RabbitNode {
	t.Helper()
	const install = "apt-get install -y rabbitmq-server"
	// Not the one in PATH, which changes its user and its directory.
	program := find(t, "/usr/lib/rabbitmq/bin/rabbitmq-server", install)
	epmd := find(t, "epmd", install)
	n := &RabbitNode{dir: t.TempDir()}
	var ports []string // of clients, of other nodes, of the register
	n.process = process{
		t: t, log: filepath.Join(n.dir, "rabbitmq.log"),
		command: func() *exec.Cmd { return n.command(program, ports) },
		ready:   n.greets,
	}
	n.epmd = process{
		t: t, name: "epmd", log: filepath.Join(n.dir, "epmd.log"),
		command: func() *exec.Cmd { return exec.Command(epmd, "-port", ports[2], "-address", "127.0.0.1") },
		ready:   func() error { return dial(net.JoinHostPort("127.0.0.1", ports[2])) },
	}
	t.Cleanup(func() {
		n.end(syscall.SIGKILL)
		n.epmd.end(syscall.SIGKILL)
	})
	var err error
	for range 5 { // another process may take a port first
		n.epmd.end(syscall.SIGKILL)
		ports = ports[:0]
		for range 3 {
			ports = append(ports, strconv.Itoa(freePort(t)))
		}
		n.addr = net.JoinHostPort("127.0.0.1", ports[0])
		n.URL, n.name = "amqp://guest:guest@"+n.addr+"/", "rabbitmq on "+n.addr
		n.configure(ports[0])
		if err = n.epmd.start(); err == nil {
			err = n.start()
		}
		if err == nil {
			return n
		}
		if !strings.Contains(n.tail(), "eaddrinuse") && n.epmd.running != nil {
			break
		}
	}
	t.Fatal(err)
	return nil
}

// configure writes the files that the broker reads. Names are looked up in a
// file of ours alone: otherwise Erlang starts helpers that outlive a kill.
func (n *RabbitNode) configure(port string) {
	n.t.Helper()
	err := os.RemoveAll(filepath.Join(n.dir, "data"))
	for name, text := range map[string]string{
		"rabbitmq.conf": "listeners.tcp.1 = 127.0.0.1:" + port + "\nlog.file = false\nlog.console = true\nlog.console.level = warning\n",
		"inetrc":        "{lookup, [file]}.\n{host, {127,0,0,1}, [\"localhost\"]}.\n",
		"plugins":       "[].\n",
		"env.conf":      "",
	} {
		err = errors.Join(err, os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600))
	}
	if err != nil {
		n.t.Fatalf("prepare the directory of a rabbitmq: %v", err)
	}
}

func (n *RabbitNode) command(program string, ports []string) *exec.Cmd {
	cmd := exec.Command(program, "-noinput")
	in := func(name string) string { return filepath.Join(n.dir, name) }
	cmd.Env = append(os.Environ(),
		"HOME="+n.dir, // for Erlang's cookie
		"ERL_INETRC="+in("inetrc"), "ERL_EPMD_PORT="+ports[2], "ERL_EPMD_ADDRESS=127.0.0.1", "ERL_CRASH_DUMP=/dev/null",
		"RABBITMQ_NODENAME=rabbit-"+ports[0]+"@localhost", "RABBITMQ_DIST_PORT="+ports[1],
		"RABBITMQ_CONFIG_FILE="+in("rabbitmq.conf"), "RABBITMQ_CONF_ENV_FILE="+in("env.conf"),
		"RABBITMQ_ENABLED_PLUGINS_FILE="+in("plugins"), "RABBITMQ_MNESIA_BASE="+in("data"), "RABBITMQ_LOG_BASE="+in("log"),
		"RABBITMQ_ALLOW_INPUT=1", // no shell stays between this process and the broker, so that a kill ends the broker
	)
	if log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
		cmd.Stdout, cmd.Stderr = log, log
		n.t.Cleanup(func() { _ = log.Close() })
	}
	return cmd
}

// greets returns nil when the broker answers the first bytes of AMQP 0-9-1.
func (n *RabbitNode) greets() error {
	conn, err := net.DialTimeout("tcp", n.addr, time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	first := make([]byte, 1)
	err = errors.Join(conn.SetDeadline(time.Now().Add(5*time.Second)), write(conn, "AMQP\x00\x00\x09\x01"))
	if err == nil {
		_, err = io.ReadFull(conn, first)
	}
	if err == nil && first[0] != 1 { // a frame with a method
		err = fmt.Errorf("the broker answered by byte %d", first[0])
	}
	return err
}

func write(w io.Writer, text string) error {
	_, err := io.WriteString(w, text)
	return err
}

// dial returns nil when somebody listens at an address.
func dial(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return err
	}
	return conn.Close()
}

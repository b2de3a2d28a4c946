//go:build linux

package testserver

import (
	"bufio"
	"bytes"
	"encoding/binary"
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

// PostgresNode is one PostgreSQL server with a data directory of its own. It is
// used by one goroutine at a time.
type PostgresNode struct {
	// Addr is its host and port. It stays the same over restarts.
	Addr string

	process
	port    int
	dir     string // data/ and the log; belongs to the user that runs the server
	options postgresOptions
}

type postgresOptions struct {
	config  []string
	env     []string
	standby *PostgresNode
	tls     bool
}

// PostgresOption is a setting of [Postgres].
type PostgresOption func(*postgresOptions)

// PostgresConfig adds lines of postgresql.conf, such as "fsync = on". By default
// a server syncs nothing, to spare the disk of the machine that tests.
func PostgresConfig(lines ...string) PostgresOption {
	return func(o *postgresOptions) { o.config = append(o.config, lines...) }
}

// PostgresEnv adds environment variables in the form "NAME=value".
func PostgresEnv(vars ...string) PostgresOption {
	return func(o *postgresOptions) { o.env = append(o.env, vars...) }
}

// PostgresTLS makes the server take TLS alone, with a certificate of its own
// that no authority signed.
func PostgresTLS() PostgresOption {
	return func(o *postgresOptions) { o.tls = true }
}

// StandbyOf makes the server a streaming standby of primary.
func StandbyOf(primary *PostgresNode) PostgresOption {
	return func(o *postgresOptions) { o.standby = primary }
}

const postgresInstall = "apt-get install -y postgresql-15"

// Postgres starts a PostgreSQL 15 server that lives until the test ends. Every
// server has an initdb of its own, so that no two share a system identifier.
// Its user is postgres, without a password; its database is postgres.
func Postgres(t testing.TB, options ...PostgresOption) *PostgresNode {
	t.Helper()
	n := &PostgresNode{dir: serverDir(t)}
	for _, option := range options {
		option(&n.options)
	}
	program := find(t, "/usr/lib/postgresql/15/bin/postgres", postgresInstall)
	n.process = process{
		t: t, name: "postgres", log: filepath.Join(n.dir, "postgres.log"),
		command: func() *exec.Cmd {
			cmd := exec.Command("/bin/sh", "-c", `exec "$0" -D "$1" >>"$2" 2>&1`, program, n.data(), n.log)
			cmd.Env = append(os.Environ(), n.options.env...)
			return cmd
		},
		prepare: asServerUser,
		ready:   n.ping,
	}
	t.Cleanup(n.Stop)
	n.create()
	var err error
	for range 5 { // another process may take the port first
		n.port = freePort(t)
		n.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port))
		n.name = "postgres on " + n.Addr
		n.configure()
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

// URL is the server's address for a client, with a user who may do everything.
func (n *PostgresNode) URL() string {
	mode := "disable"
	if n.options.tls {
		mode = "require"
	}
	return "postgres://postgres@" + n.Addr + "/postgres?sslmode=" + mode
}

// Stop kills all processes of the server as kill -9 does.
func (n *PostgresNode) Stop() {
	n.t.Helper()
	if n.running != nil {
		n.signal(syscall.SIGSTOP) // so that it starts no more children
		n.signalGroup(syscall.SIGKILL)
	}
	n.end(syscall.SIGKILL)
}

// Restart starts the server again at the same address with what is on its disk.
// One that still runs is killed first.
func (n *PostgresNode) Restart() {
	n.t.Helper()
	n.Stop()
	n.startAgain()
}

// startAgain starts the server on the disk that it had. What a kill left behind
// of its memory goes a moment later.
func (n *PostgresNode) startAgain() {
	n.t.Helper()
	var err error
	for range 20 {
		if err = n.start(); err == nil || !strings.Contains(err.Error(), "shared memory block") {
			break
		}
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// Stall stops the server's processes from running, as a long pause of its
// machine would.
func (n *PostgresNode) Stall() { n.t.Helper(); n.signalGroup(syscall.SIGSTOP) }

// Resume ends a Stall.
func (n *PostgresNode) Resume() { n.t.Helper(); n.signalGroup(syscall.SIGCONT) }

// signalGroup reaches the children of the server too: each is the leader of its
// own process group.
func (n *PostgresNode) signalGroup(sig syscall.Signal) {
	n.t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", n.running.Pid, n.running.Pid))
	if err != nil {
		n.t.Fatal(err)
	}
	for _, field := range strings.Fields(string(children)) {
		if pid, err := strconv.Atoi(field); err == nil {
			_ = syscall.Kill(pid, sig) // it may have ended
		}
	}
	n.signal(sig)
}

// Promote makes a standby a primary, and waits until it is one.
func (n *PostgresNode) Promote() {
	n.t.Helper()
	n.tool("pg_ctl", "promote", "-w", "-D", n.data())
}

// CopyDisk stops the server, copies its disk, and starts it again: a backup.
func (n *PostgresNode) CopyDisk() (disk string) {
	n.t.Helper()
	n.end(syscall.SIGINT) // a fast shutdown, with a checkpoint
	disk = serverDir(n.t)
	n.tool("cp", "-a", n.data(), filepath.Join(disk, "data"))
	n.startAgain()
	return disk
}

// RestartFrom kills the server and starts it with an earlier disk in its place.
func (n *PostgresNode) RestartFrom(disk string) {
	n.t.Helper()
	n.Stop()
	if err := os.RemoveAll(n.data()); err != nil {
		n.t.Fatal(err)
	}
	n.tool("cp", "-a", filepath.Join(disk, "data"), n.data())
	n.startAgain()
}

func (n *PostgresNode) data() string { return filepath.Join(n.dir, "data") }

// create makes the data directory.
func (n *PostgresNode) create() {
	n.t.Helper()
	if n.options.standby != nil {
		p := n.options.standby
		n.tool("pg_basebackup", "-D", n.data(), "-d", p.URL(), "-R", "-c", "fast", "--no-sync")
		return
	}
	n.tool("initdb", "-D", n.data(), "-U", "postgres", "-A", "trust", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale", "C")
}

// configure writes the settings, in a file that the usual one includes last.
func (n *PostgresNode) configure() {
	n.t.Helper()
	lines := append([]string{
		"listen_addresses = '127.0.0.1'", "unix_socket_directories = ''", "port = " + strconv.Itoa(n.port),
		"fsync = off", "max_connections = 200", "shared_buffers = 16MB", "max_wal_size = 256MB", "logging_collector = off",
	}, n.options.config...)
	if n.options.tls {
		n.certify()
		lines = append(lines, "ssl = on")
	}
	name := filepath.Join(n.data(), "postgresql.conf")
	if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		n.t.Fatal(err)
	}
}

// tool runs one of the server's programs, as the server's user.
func (n *PostgresNode) tool(program string, args ...string) {
	n.t.Helper()
	path := "/usr/lib/postgresql/15/bin/" + program
	if program == "cp" {
		path = "/bin/cp"
	}
	cmd := exec.Command(find(n.t, path, postgresInstall), args...)
	dieWithParent(cmd)
	asServerUser(cmd)
	cmd.Dir = "/"
	if text, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("%s: %v\n%s", program, err, text)
	}
}

// ping returns nil when the server takes sessions: it speaks just enough of the
// protocol to be asked to start one.
func (n *PostgresNode) ping() error {
	c, err := net.DialTimeout("tcp", n.Addr, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	body := append(binary.BigEndian.AppendUint32(nil, 3<<16), "user\x00postgres\x00database\x00postgres\x00\x00"...)
	if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)); err != nil {
		return err
	}
	in := bufio.NewReader(c)
	kind, err := in.ReadByte()
	if err == nil && kind != 'R' {
		text, _ := io.ReadAll(io.LimitReader(in, 200))
		if n.options.tls && bytes.Contains(text, []byte("no encryption")) {
			return nil
		}
		err = fmt.Errorf("the server answers %c %q", kind, text)
	}
	return err
}

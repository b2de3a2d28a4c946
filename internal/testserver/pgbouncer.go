//go:build linux

package testserver

import (
	"fmt"
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

// PgBouncer starts a pgbouncer in transaction mode in front of a server, with a
// pool of size connections, and returns its URL. It lives until the test ends.
func PgBouncer(t testing.TB, node *PostgresNode, size int) (url string) {
	t.Helper()
	program := find(t, "/usr/sbin/pgbouncer", "apt-get install -y pgbouncer")
	dir := serverDir(t)
	config := filepath.Join(dir, "pgbouncer.ini")
	var addr string
	p := process{
		t: t, name: "pgbouncer", log: filepath.Join(dir, "pgbouncer.log"),
		command: func() *exec.Cmd { return exec.Command(program, "-q", config) },
		prepare: asServerUser,
		ready: func() error {
			c, err := net.DialTimeout("tcp", addr, time.Second)
			if err == nil {
				_ = c.Close()
			}
			return err
		},
	}
	t.Cleanup(func() { p.end(syscall.SIGKILL) })
	var err error
	for range 5 { // another process may take the port first
		port := freePort(t)
		addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		text := fmt.Sprintf("[databases]\npostgres = host=127.0.0.1 port=%d user=postgres\n[pgbouncer]\n"+
			"listen_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"+
			"default_pool_size = %d\nmax_client_conn = 500\nlogfile = %s\npidfile =\n", node.port, port, size, p.log)
		if err = os.WriteFile(config, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err = p.start(); err == nil {
			return "postgres://postgres@" + addr + "/postgres?sslmode=disable"
		}
		if !strings.Contains(p.tail(), "in use") {
			break
		}
	}
	t.Fatal(err)
	return ""
}

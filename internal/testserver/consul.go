//go:build unix

package testserver

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ConsulVersion is the version of the server that tests start: the last of
// which every module is open source.
const ConsulVersion = "1.13.9"

// ConsulNode is one Consul server, a cluster of its own. It is used by one
// goroutine at a time.
type ConsulNode struct {
	// Addr is host and port of its HTTP interface, and AddrTLS of the one over
	// TLS if [ConsulTLS] was given. They stay the same over restarts.
	Addr, AddrTLS string

	process
	dir     string // consul.json, consul.log and data/
	options []ConsulOption
}

// ConsulOption is a setting of [Consul].
type ConsulOption func(config map[string]any)

// ConsulConfig sets one top-level setting of the server's configuration.
func ConsulConfig(key string, value any) ConsulOption {
	return func(config map[string]any) { config[key] = value }
}

// ConsulTokens makes the server refuse what comes without a token; management
// may do everything.
func ConsulTokens(management string) ConsulOption {
	return ConsulConfig("acl", map[string]any{
		"enabled": true, "default_policy": "deny", "tokens": map[string]any{"initial_management": management},
	})
}

// ConsulTLS makes the server serve HTTPS as well, with the PEM files given; a
// client has to show a certificate of the same authority.
func ConsulTLS(ca, cert, key string) ConsulOption {
	return ConsulConfig("tls", map[string]any{
		"https": map[string]any{"ca_file": ca, "cert_file": cert, "key_file": key, "verify_incoming": true},
	})
}

// Consul starts a Consul server that lives until the test ends. It takes
// sessions of 1 s and more unless "session_ttl_min" is set. The test fails when
// the server was not built or does not serve.
func Consul(t testing.TB, options ...ConsulOption) *ConsulNode {
	t.Helper()
	program := findBuilt(t, "consul-"+ConsulVersion)
	n := &ConsulNode{dir: t.TempDir(), options: options}
	file := filepath.Join(n.dir, "consul.json")
	n.process = process{
		t: t, name: "consul", log: filepath.Join(n.dir, "consul.log"),
		command: func() *exec.Cmd {
			cmd := exec.Command(program, "agent", "-config-file", file)
			// It writes its log to standard output; a file that is given to it
			// it would rename.
			if log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
				cmd.Stdout, cmd.Stderr = log, log
				t.Cleanup(func() { _ = log.Close() })
			}
			return cmd
		},
		ready: n.serves,
	}
	t.Cleanup(func() { n.end(syscall.SIGKILL) })
	var err error
	for range 5 { // another process may take a port first
		n.configure(file)
		if err = n.start(); err == nil {
			return n
		}
		if !strings.Contains(n.tail(), "address already in use") {
			break
		}
	}
	t.Fatal(err)
	return nil
}

// configure draws ports and writes the configuration.
func (n *ConsulNode) configure(file string) {
	n.t.Helper()
	port := freePort(n.t)
	n.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	n.name = "consul on " + n.Addr
	ports := map[string]any{
		"http": port, "https": -1, "dns": -1, "grpc": -1, "serf_wan": -1,
		"serf_lan": freePort(n.t), "server": freePort(n.t),
	}
	config := map[string]any{
		"node_name": "node-" + strconv.Itoa(port), "data_dir": filepath.Join(n.dir, "data"),
		"server": true, "bootstrap_expect": 1, "bind_addr": "127.0.0.1", "client_addr": "127.0.0.1", "ports": ports,
		"disable_update_check": true, // it would ask the network
		"log_level":            "WARN",
		"session_ttl_min":      "1s",
		"performance":          map[string]any{"raft_multiplier": 1},
		"limits":               map[string]any{"http_max_conns_per_client": 2000},
	}
	for _, option := range n.options {
		option(config)
	}
	if _, ok := config["tls"]; ok {
		port := freePort(n.t)
		ports["https"] = port
		n.AddrTLS = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	text, err := json.Marshal(config)
	if err == nil {
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		n.t.Fatalf("prepare the directory of a consul: %v", err)
	}
}

// serves returns nil when the server leads its cluster and has made the token
// of clients without one: until then it refuses them as unknown.
func (n *ConsulNode) serves() error {
	client := http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	reply, err := client.Get("http://" + n.Addr + "/v1/kv/is-there-a-leader?consistent")
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	denied := reply.StatusCode == http.StatusForbidden && strings.HasPrefix(string(text), "Permission denied")
	if err == nil && reply.StatusCode != http.StatusNotFound && !denied {
		err = fmt.Errorf("not ready yet: %s: %s", reply.Status, text)
	}
	return err
}

// RestartEmpty is Restart with an empty disk.
func (n *ConsulNode) RestartEmpty() {
	n.t.Helper()
	n.end(syscall.SIGKILL)
	if err := os.RemoveAll(filepath.Join(n.dir, "data")); err != nil {
		n.t.Fatal(err)
	}
	n.Restart()
}

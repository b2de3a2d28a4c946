//go:build unix

package testserver

import (
	"errors"
	"fmt"
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

// EtcdVersion is the version of the server that tests start.
const EtcdVersion = "3.7.3"

// EtcdNode is one etcd server. It is used by one goroutine at a time.
type EtcdNode struct {
	// Addr is host and port for clients. It stays the same over restarts.
	Addr string

	process
	peer, health string // addresses
	dir          string // etcd.log and data/
	flags        []string
}

// EtcdOption is a setting of [Etcd] and [EtcdCluster].
type EtcdOption func(*EtcdNode)

// EtcdFlags adds flags, such as "--quota-backend-bytes=16777216". A later one
// replaces an earlier one of the same name.
func EtcdFlags(flags ...string) EtcdOption {
	return func(n *EtcdNode) { n.flags = append(n.flags, flags...) }
}

// EtcdTLS makes the server serve its clients by TLS alone, with the PEM files
// given; a client has to show a certificate of the same authority.
func EtcdTLS(ca, cert, key string) EtcdOption {
	return EtcdFlags("--client-cert-auth", "--trusted-ca-file="+ca, "--cert-file="+cert, "--key-file="+key)
}

// Etcd starts an etcd server, a cluster of its own that lives until the test
// ends. It gives leases of 1 s and more. The test fails when the server was not
// built or does not serve.
func Etcd(t testing.TB, options ...EtcdOption) *EtcdNode {
	t.Helper()
	// Its only member wins every election, so that it may hold one soon.
	return etcd(t, 1, append([]EtcdOption{EtcdFlags("--heartbeat-interval=40", "--election-timeout=400")}, options...))[0]
}

// EtcdCluster starts one cluster of several members.
func EtcdCluster(t testing.TB, members int, options ...EtcdOption) []*EtcdNode {
	t.Helper()
	return etcd(t, members, append([]EtcdOption{EtcdFlags("--heartbeat-interval=50", "--election-timeout=500")}, options...))
}

// etcd starts a cluster, with other ports if somebody takes one first.
func etcd(t testing.TB, members int, options []EtcdOption) []*EtcdNode {
	t.Helper()
	program := findBuilt(t, "etcd-"+EtcdVersion)
	var err error
	for range 5 {
		nodes := make([]*EtcdNode, members)
		for i := range nodes {
			nodes[i] = newEtcd(t, program, options)
		}
		if err = startEtcd(nodes); err == nil {
			return nodes
		}
		inUse := false
		for _, n := range nodes {
			n.end(syscall.SIGKILL)
			inUse = inUse || strings.Contains(n.tail(), "address already in use")
		}
		if !inUse {
			break
		}
	}
	t.Fatal(err)
	return nil
}

func newEtcd(t testing.TB, program string, options []EtcdOption) *EtcdNode {
	t.Helper()
	n := &EtcdNode{dir: t.TempDir()}
	for _, addr := range []*string{&n.Addr, &n.peer, &n.health} {
		*addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
	}
	for _, option := range options {
		option(n)
	}
	n.process = process{
		t: t, name: "etcd on " + n.Addr, log: filepath.Join(n.dir, "etcd.log"),
		command: func() *exec.Cmd { return exec.Command(program, n.flags...) },
		ready:   n.serves,
	}
	t.Cleanup(func() { n.end(syscall.SIGKILL) })
	return n
}

// startEtcd starts the members of a cluster. None serves before most of them
// run, so all are started before the first is waited for.
func startEtcd(nodes []*EtcdNode) error {
	var peers []string
	for _, n := range nodes {
		peers = append(peers, n.peer+"=http://"+n.peer)
	}
	for _, n := range nodes {
		scheme := "http://"
		if strings.Contains(strings.Join(n.flags, " "), "--cert-file") {
			scheme = "https://"
		}
		n.flags = append([]string{
			"--name=" + n.peer, "--data-dir=" + filepath.Join(n.dir, "data"),
			"--initial-cluster=" + strings.Join(peers, ","), "--initial-cluster-token=" + nodes[0].peer,
			"--listen-peer-urls=http://" + n.peer, "--initial-advertise-peer-urls=http://" + n.peer,
			"--listen-client-urls=" + scheme + n.Addr, "--advertise-client-urls=" + scheme + n.Addr,
			"--listen-metrics-urls=http://" + n.health,
			"--log-outputs=" + n.log, "--log-level=error", "--unsafe-no-fsync",
		}, n.flags...)
	}
	if len(nodes) == 1 {
		return nodes[0].start()
	}
	errs := make(chan error)
	for _, n := range nodes {
		go func() { errs <- n.start() }()
	}
	var all []error
	for range nodes {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// serves returns nil when the server answers a linearizable read.
func (n *EtcdNode) serves() error {
	client := http.Client{Timeout: time.Second}
	defer client.CloseIdleConnections()
	reply, err := client.Get("http://" + n.health + "/health")
	if err != nil {
		return err
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("its health is %s", reply.Status)
	}
	return nil
}

// CopyDisk kills the server, copies what it has on disk, for
// [EtcdNode.RestartFrom], and starts it again.
func (n *EtcdNode) CopyDisk() (disk string) {
	n.t.Helper()
	n.end(syscall.SIGKILL)
	disk = n.t.TempDir()
	if err := os.CopyFS(disk, os.DirFS(filepath.Join(n.dir, "data"))); err != nil {
		n.t.Fatal(err)
	}
	n.Restart()
	return disk
}

// RestartFrom kills the server and starts it with an earlier disk, as when a
// backup is restored. An empty name is an empty disk.
func (n *EtcdNode) RestartFrom(disk string) {
	n.t.Helper()
	n.end(syscall.SIGKILL)
	data := filepath.Join(n.dir, "data")
	err := os.RemoveAll(data)
	if disk != "" {
		err = errors.Join(err, os.CopyFS(data, os.DirFS(disk)))
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.Restart()
}

//go:build unix

package testserver

import (
	"crypto/tls"
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

// KubernetesVersion is the version of the API server that tests start.
const KubernetesVersion = "1.37.2"

// LeasesNode is one Kubernetes API server that serves Leases, over an etcd of
// its own. It is used by one goroutine at a time.
type LeasesNode struct {
	// Addr is host and port of its HTTPS interface, and CA the path of the
	// certificate that it shows. They stay the same over restarts.
	Addr, CA string
	// Admin and User are tokens: of who may do everything, and of who may do
	// what the Role given to [LeasesRole] says.
	Admin, User string
	// Etcd is where it keeps all that it knows.
	Etcd *EtcdNode

	process
	dir, role string
}

// LeasesOption is a setting of [Leases].
type LeasesOption func(*LeasesNode)

// LeasesRole lets the user do what a Role says, the text of a manifest.
func LeasesRole(manifest string) LeasesOption { return func(n *LeasesNode) { n.role = manifest } }

// Leases starts an API server that lives until the test ends. The test fails
// when the server was not built or does not serve.
func Leases(t testing.TB, options ...LeasesOption) *LeasesNode {
	t.Helper()
	program := findBuilt(t, "leases-"+KubernetesVersion)
	n := &LeasesNode{Admin: "admin-secret", User: "user-secret", Etcd: Etcd(t), dir: t.TempDir()}
	for _, option := range options {
		option(n)
	}
	n.CA = filepath.Join(n.dir, "apiserver.crt")
	role := filepath.Join(n.dir, "role.yaml")
	if err := os.WriteFile(role, []byte(n.role), 0o600); err != nil {
		t.Fatal(err)
	}
	n.process = process{
		t: t, log: filepath.Join(n.dir, "leases.log"),
		command: func() *exec.Cmd {
			_, port, _ := net.SplitHostPort(n.Addr)
			cmd := exec.Command(program, "-etcd=http://"+n.Etcd.Addr, "-port="+port, "-certs="+n.dir,
				"-admin="+n.Admin, "-user="+n.User, "-role="+role)
			if log, err := os.OpenFile(n.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
				cmd.Stdout, cmd.Stderr = log, log
				t.Cleanup(func() { _ = log.Close() })
			}
			return cmd
		},
		ready: n.ready,
	}
	t.Cleanup(func() { n.end(syscall.SIGKILL) })
	var err error
	for range 5 { // another process may take the port first
		n.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(freePort(t)))
		n.name = "leases on " + n.Addr
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

// ready returns nil when the server says that it is, its etcd included.
func (n *LeasesNode) ready() error {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // its certificate may not be written yet
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, "https://"+n.Addr+"/readyz", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+n.Admin)
	reply, err := (&http.Client{Transport: transport, Timeout: 2 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	_ = reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("it says that it is not ready: %s", reply.Status)
	}
	return nil
}

// Kubeconfig writes a kubeconfig with the token of a user, and returns its path.
func (n *LeasesNode) Kubeconfig(token string) string {
	n.t.Helper()
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: test
  cluster: {server: "https://%s", certificate-authority: %q}
users:
- name: test
  user: {token: %q}
contexts:
- name: test
  context: {cluster: test, user: test}
current-context: test
`, n.Addr, n.CA, token)
	file := filepath.Join(n.t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		n.t.Fatal(err)
	}
	return file
}

package etcdstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

// authority makes a certificate that is its own authority, the server's and the
// client's, and returns its files in PEM.
func authority(t *testing.T) (cert, key string) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "quorum"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return file("cert.pem", "CERTIFICATE", der), file("key.pem", "PRIVATE KEY", private)
}

func TestR54ConformanceOverTLS(t *testing.T) {
	cert, key := authority(t)
	node := testserver.Etcd(t, testserver.EtcdTLS(cert, cert, key))
	text, err := os.ReadFile(cert)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	conform(t, func() *clientv3.Client {
		return clientOf(t, clientv3.Config{
			Endpoints: []string{node.Addr}, TLS: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}},
		})
	})
	// The same by a DSN.
	dsn := "etcds://" + node.Addr + "?prefix=dsn&cacert=" + cert + "&cert=" + cert + "&key=" + key
	set, err := quorum.Open(t.Context(), []string{dsn}, etcdstore.Opener())
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close(t.Context()) }()
	if err := l.Init(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := l.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

const password = "s3cret-of-the-test"

// guarded starts a server that asks for a password; the user may do what the
// documents say that it must, and no more.
func guarded(t *testing.T) (*testserver.EtcdNode, *clientv3.Client) {
	t.Helper()
	node := testserver.Etcd(t, testserver.EtcdFlags("--auth-token-ttl=2", "--bcrypt-cost=4"))
	c, ctx := client(t, node), t.Context()
	end := clientv3.GetPrefixRangeEnd("quorum/")
	for _, err := range []error{
		second(c.UserAdd(ctx, "root", password)),
		second(c.UserGrantRole(ctx, "root", "root")),
		second(c.RoleAdd(ctx, "locks")),
		second(c.RoleGrantPermission(ctx, "locks", "quorum/", end, clientv3.PermissionType(clientv3.PermReadWrite))),
		second(c.UserAdd(ctx, "worker", password)),
		second(c.UserGrantRole(ctx, "worker", "locks")),
		second(c.AuthEnable(ctx)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return node, clientOf(t, clientv3.Config{Endpoints: []string{node.Addr}, Username: "worker", Password: password})
}

func second[T any](_ T, err error) error { return err }

// The server's tokens live for two seconds.
func TestF089TokenThatExpiresIsRenewed(t *testing.T) {
	_, c := guarded(t)
	s := store(t, c)
	declareNew(t, s)
	r := ask("k", owner())
	held, other := mustAcquire(t, s, r), ask("k", owner())
	for range 4 { // each longer than a token lives
		<-time.After(1500 * time.Millisecond)
		if again := mustExtend(t, s, r); again.Token != held.Token {
			t.Fatalf("token %d, want %d", again.Token, held.Token)
		}
		_, err := s.Acquire(t.Context(), other)
		wantOutcome(t, err, quorum.OutcomeContended)
	}
	<-time.After(2500 * time.Millisecond)
	mustRelease(t, s, r)
	mustAcquire(t, s, other)
}

func TestR63NoSecretInErrors(t *testing.T) {
	node, c := guarded(t)
	_, err := store(t, c, etcdstore.Prefix("elsewhere")).Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if text := err.Error(); !strings.Contains(text, "grant its role readwrite") || strings.Contains(text, password) {
		t.Errorf("without permission: %v", err)
	}
	_, err = store(t, client(t, node)).Acquire(t.Context(), ask("k", owner()))
	if wantOutcome(t, err, quorum.OutcomeUndelivered); !strings.Contains(err.Error(), "asks for a user") {
		t.Errorf("without a user: %v", err)
	}
	set, err := quorum.Open(t.Context(), []string{"etcd://worker:wrong-" + password + "@" + node.Addr}, etcdstore.Opener())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = set.Close() }()
	_, err = set.Members()[0].Acquire(t.Context(), ask("k", owner()))
	if wantOutcome(t, err, quorum.OutcomeUndelivered); !strings.Contains(err.Error(), "refuses the user or the password") || strings.Contains(err.Error(), password) {
		t.Errorf("with a wrong password: %v", err)
	}
}

// A set opens also while one of its servers is down, password or not.
func TestR62OpenAsksNoServer(t *testing.T) {
	set, err := quorum.Open(t.Context(), []string{"etcd://worker:" + password + "@127.0.0.1:1"}, etcdstore.Opener())
	if err != nil {
		t.Fatal(err)
	}
	_, err = set.Members()[0].Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	_, err = set.Members()[0].Acquire(t.Context(), ask("k", owner()))
	if wantOutcome(t, err, quorum.OutcomeUndelivered); errors.Is(err, quorum.ErrHeld) {
		t.Error(err)
	}
}

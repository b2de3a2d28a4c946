package consulstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/consulstore"
	"github.com/quorumlock/quorum/storetest"
)

// certificate writes an authority and a certificate of it for this machine.
func certificate(t *testing.T) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		check(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
		return path
	}
	issue := func(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) []byte {
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
		check(err)
		return der
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	ca = write("ca.pem", "CERTIFICATE", issue(authority, authority, caKey, caKey))
	leafKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert = write("cert.pem", "CERTIFICATE", issue(leaf, authority, leafKey, caKey))
	der, err := x509.MarshalECPrivateKey(leafKey)
	check(err)
	return ca, cert, write("key.pem", "EC PRIVATE KEY", der)
}

const management = "f2a9c6de-0b77-4f6f-8f0c-3f1b2a6c9d10"

// TestConformanceOpened runs the suite through stores that Opener made, over
// TLS with a certificate of the client's, by a token that may do no more than
// the documentation says.
func TestConformanceOpened(t *testing.T) {
	ca, cert, key := certificate(t)
	node := testserver.Consul(t, testserver.ConsulTokens(management), testserver.ConsulTLS(ca, cert, key))
	token := restricted(t, node, "checks", "")
	var n atomic.Int32
	open := func(t *testing.T, prefix string) quorum.Store {
		query := url.Values{
			"ca": {ca}, "cert": {cert}, "key": {key}, "min-ttl": {minTTL.String()}, "prefix": {prefix}, "name": {"a"},
		}
		dsn := url.URL{Scheme: "consuls", Host: node.AddrTLS, User: url.UserPassword("", token), RawQuery: query.Encode()}
		s, err := consulstore.Opener().Open(t.Context(), &dsn)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.(*consulstore.Store).Close() })
		return s
	}
	t.Setenv("CONSUL_HTTP_TOKEN", "another")  // counts for nothing
	t.Setenv("CONSUL_NAMESPACE", "elsewhere") // nor does this
	run := storetest.Factory{
		New:      func(t *testing.T) quorum.Store { return open(t, fmt.Sprintf("checks/%d", n.Add(1))) },
		Parallel: true,
	}
	storetest.Run(t, run)
}

// restricted makes a token that may use one prefix, and, but for without,
// what a store needs beside it.
func restricted(t *testing.T, node *testserver.ConsulNode, prefix, without string) string {
	t.Helper()
	c, err := api.NewClient(&api.Config{Address: node.Addr, Token: management})
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{
		"keys":     fmt.Sprintf(`key_prefix %q { policy = "write" }`, prefix+"/"),
		"identity": `key "quorum-server" { policy = "write" }`,
		"sessions": `session_prefix "" { policy = "write" }`,
	}
	delete(rules, without)
	var text strings.Builder
	for _, rule := range rules {
		text.WriteString(rule + "\n")
	}
	var made *api.ACLToken
	await(t, "the server to make tokens", func() bool {
		policy, _, err := c.ACL().PolicyCreate(&api.ACLPolicy{Name: "without-" + without, Rules: text.String()}, nil)
		if err != nil {
			return false
		}
		made, _, err = c.ACL().TokenCreate(&api.ACLToken{Policies: []*api.ACLLink{{ID: policy.ID}}}, nil)
		return err == nil
	})
	return made.SecretID
}

func TestR81RefusedTokenIsNoContention(t *testing.T) {
	node := testserver.Consul(t, testserver.ConsulTokens(management))
	for without, want := range map[string]string{
		"keys": "key_prefix", "sessions": "session_prefix", "unknown": "does not know the token", "none": "key_prefix", "identity": "",
	} {
		t.Run(without, func(t *testing.T) {
			token := ""
			switch without {
			case "unknown":
				token = "0c3c5a28-1111-2222-3333-0123456789ab"
			case "none":
			default:
				token = restricted(t, node, "quorum", without)
			}
			c, err := api.NewClient(&api.Config{Address: node.Addr, Token: token})
			if err != nil {
				t.Fatal(err)
			}
			s := store(t, c)
			r := ask("k", owner())
			_, err = s.Acquire(t.Context(), r)
			if without == "identity" {
				wantOutcome(t, err, quorum.OutcomeQuarantined)
				if advice := s.Advice(); len(advice) != 1 || !strings.Contains(advice[0], "quorum-server") {
					t.Errorf("advice %q, want one about the identity", advice)
				}
				return
			}
			wantOutcome(t, err, quorum.OutcomeUndelivered)
			if errors.Is(err, quorum.ErrHeld) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want one that names %s", err, want)
			}
			for _, secret := range []string{token, management, r.Owner.Hex()} {
				if secret != "" && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
					t.Errorf("R63: the error shows %q", secret)
				}
			}
		})
	}
}

func TestNamespaceOfAClientIsRefusedByTheServer(t *testing.T) {
	node := testserver.Consul(t)
	c, err := api.NewClient(&api.Config{Address: node.Addr, Namespace: "team"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = store(t, c).Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !errors.Is(err, quorum.ErrUnsupported) {
		t.Errorf("%v, want ErrUnsupported", err)
	}
}

func TestUnknownDatacenter(t *testing.T) {
	node := testserver.Consul(t)
	_, err := store(t, client(t, node.Addr), consulstore.Datacenter("nowhere")).Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if !strings.Contains(err.Error(), "no such datacenter") {
		t.Errorf("%v, want one that says so", err)
	}
}

func TestR57UsersClientStaysOpen(t *testing.T) {
	node := testserver.Consul(t)
	c := client(t, node.Addr)
	s := store(t, c)
	declareNew(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status().Leader(); err != nil {
		t.Errorf("the user's client after Close: %v", err)
	}
}

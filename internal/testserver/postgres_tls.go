//go:build linux

package testserver

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// certify writes a certificate and its key, and refuses sessions without TLS.
func (n *PostgresNode) certify() {
	n.t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		n.t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, about, about, public, private)
	if err != nil {
		n.t.Fatal(err)
	}
	key, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		n.t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"server.crt":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		"server.key":  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"pg_hba.conf": []byte("hostssl all all 127.0.0.1/32 trust\n"),
	} {
		path := filepath.Join(n.data(), name)
		err := os.WriteFile(path, text, 0o600)
		if id := serverUser(); err == nil && id != nil {
			err = os.Chown(path, int(id.Uid), int(id.Gid))
		}
		if err != nil {
			n.t.Fatal(err)
		}
	}
}

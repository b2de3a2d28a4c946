//go:build linux

package testserver

import (
	"os"
	"path/filepath"
)

// certify writes a certificate and its key, and refuses sessions without TLS.
func (n *PostgresNode) certify() {
	n.t.Helper()
	cert, key := certificate(n.t)
	for name, text := range map[string][]byte{
		"server.crt":  cert,
		"server.key":  key,
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

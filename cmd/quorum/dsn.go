package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/quorumlock/quorum"
)

// checkDSNs refuses what is no DSN of a store that the command knows, and
// writes file: and sqlite: DSNs in one way, since their text becomes the store's name, on
// which all clients must agree. where says who gave them.
func checkDSNs(where string, dsns []string) ([]string, error) {
	var checked []string
	for i, text := range dsns {
		dsn, err := checkDSN(text)
		if err != nil {
			return nil, usagef("%s, store %d of %d: %w", where, i+1, len(dsns), err)
		}
		checked = append(checked, dsn)
	}
	return checked, nil
}

// hostAndPort is a server without a scheme. Only such a text, and a path, may
// be shown when it is no DSN: any other may hold a password.
var hostAndPort = regexp.MustCompile(`^[A-Za-z0-9.-]+(:[0-9]{1,5})?$`)

func checkDSN(text string) (string, error) {
	switch {
	case text == "":
		return "", errors.New("the DSN is empty; write redis://host:port/db or file:/directory")
	case strings.HasPrefix(text, "/"):
		return "", fmt.Errorf("%s is a path and no DSN; write file:%s", text, text)
	case hostAndPort.MatchString(text):
		return "", fmt.Errorf("%s is no DSN; write redis://%s for a server", text, text)
	}
	u, err := quorum.ParseDSN(text)
	if err != nil {
		return "", err
	}
	switch u.Scheme {
	case "redis", "rediss", "redis+cluster", "rediss+cluster", "postgres", "postgresql", "consul", "consuls", "etcd", "etcds", "kube":
		return text, nil
	case "file":
		return checkPath(u, "directory")
	case "sqlite":
		return checkPath(u, "file")
	}
	return "", fmt.Errorf("there is no kind of store %q; quorum knows redis://, rediss:// (TLS), postgres://, consul://, "+
		"consuls:// (TLS), etcd://, etcds:// (TLS), kube://namespace, file:/directory and sqlite:/file", u.Scheme)
}

// checkPath refuses a path of a directory or file that depends on the working
// directory, and one whose parent is missing: it is mistyped, and would be a set
// of its own.
func checkPath(u *url.URL, what string) (string, error) {
	if u.Opaque != "" || u.Path == "" || u.Host != "" {
		return "", fmt.Errorf("%s: give the absolute path of a %s, %s:/%s", quorum.MaskDSN(u.String()), what, u.Scheme, what)
	}
	path := filepath.Clean(u.Path)
	parent := filepath.Dir(path)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s:%s: there is no directory %s; correct the path, or make that directory", u.Scheme, path, parent)
	}
	u.Path, u.RawPath, u.OmitHost = path, "", false
	return u.String(), nil
}

// hasPassword reports whether a DSN holds something that others must not see.
func hasPassword(dsn string) bool { return quorum.MaskDSN(dsn) != dsn }

package etcdstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/quorumlock/quorum"
)

// Opener returns the [quorum.Opener] of DSNs such as
//
//	etcd://user:password@10.0.0.1:2379,10.0.0.2:2379/?prefix=quorum
//
// for one cluster, and etcds:// over TLS. A port that is left out is 2379.
// Beside name and [Prefix] it takes, with etcds, files in PEM: cacert, whose
// authorities it trusts instead of the system's, and cert and key, a client's
// certificate. The store closes the client that it makes.
//
// Without a name the store's is scheme and hosts, in the order of the alphabet,
// with the prefix where it is not quorum.
func Opener() quorum.Opener {
	return quorum.Opener{Schemes: []string{"etcd", "etcds"}, Open: open, Name: nameOf}
}

const defaultPort = "2379"

// hosts lists the endpoints of a DSN in one order.
func hosts(dsn *url.URL) ([]string, error) {
	var all []string
	for _, h := range strings.Split(dsn.Host, ",") {
		if host, port, err := net.SplitHostPort(h); err == nil && host != "" && port != "" {
			all = append(all, h)
		} else if h != "" && strings.Count(h, ":") == 0 || strings.HasPrefix(h, "[") && strings.HasSuffix(h, "]") {
			all = append(all, h+":"+defaultPort)
		} else {
			return nil, fmt.Errorf("%w: an etcd DSN has the form etcd://host:port,host:port/", quorum.ErrInvalidOption)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// nameOf leaves hosts that make no sense in the name: open refuses them.
func nameOf(dsn *url.URL) string {
	name := url.URL{Scheme: dsn.Scheme, Opaque: dsn.Opaque, Host: dsn.Host}
	if all, err := hosts(dsn); err == nil {
		name.Host = strings.Join(all, ",")
	}
	if prefix := dsn.Query().Get("prefix"); prefix != "" && prefix != defaultPrefix {
		name.RawQuery = url.Values{"prefix": {prefix}}.Encode()
	}
	return name.String()
}

func open(_ context.Context, dsn *url.URL) (quorum.Store, error) {
	endpoints, err := hosts(dsn)
	if err != nil {
		return nil, err
	}
	query := dsn.Query()
	known := []string{"name", "prefix"}
	if dsn.Scheme == "etcds" {
		known = append(known, "cacert", "cert", "key")
	}
	for key := range query {
		if !slices.Contains(known, key) {
			return nil, fmt.Errorf("%w: an %s DSN has no setting %q; there are %v", quorum.ErrInvalidOption, dsn.Scheme, key, known)
		}
	}
	if strings.Trim(dsn.Path, "/") != "" || dsn.Fragment != "" {
		return nil, fmt.Errorf("%w: an etcd DSN has no path; the namespace is ?prefix=", quorum.ErrInvalidOption)
	}
	config := clientv3.Config{
		Endpoints: endpoints,
		// A server that hangs, or a network that drops, shows by these.
		DialTimeout: 2 * time.Second, DialKeepAliveTime: 10 * time.Second, DialKeepAliveTimeout: 3 * time.Second,
		Logger: zap.NewNop(), // what it has to say the errors say too
	}
	if dsn.Scheme == "etcds" {
		if config.TLS, err = tlsOf(query.Get("cacert"), query.Get("cert"), query.Get("key")); err != nil {
			return nil, err
		}
	}
	var options []Option
	if query.Has("prefix") {
		options = append(options, Prefix(query.Get("prefix")))
	}
	config.Username = dsn.User.Username()
	config.Password, _ = dsn.User.Password()
	s, err := newStore(query.Get("name"), options)
	if err != nil {
		return nil, err
	}
	s.opened = &opened{turn: make(chan struct{}, 1), config: config}
	return s, nil
}

// tlsOf reads the files of a TLS client; empty names are left out.
func tlsOf(cacert, cert, key string) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if cacert != "" {
		text, err := os.ReadFile(cacert)
		if err != nil {
			return nil, fmt.Errorf("%w: cacert: %w", quorum.ErrInvalidOption, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%w: cacert %s holds no certificate in PEM", quorum.ErrInvalidOption, cacert)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%w: cert and key: %w", quorum.ErrInvalidOption, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

package consulstore

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/hashicorp/consul/api"

	"github.com/quorumlock/quorum"
)

// Opener returns the [quorum.Opener] of DSNs such as
//
//	consul://:TOKEN@10.0.0.1:8500?prefix=quorum
//
// and consuls:// over TLS. The password is the ACL token. It takes name,
// prefix, dc (see [Datacenter]), min-ttl (see [MinTTL]) and, over TLS, ca,
// cert and key: PEM files of the authority to trust instead of the system's,
// and of the client. The environment variables that Consul's own client reads
// count for nothing. The store closes its connections.
//
// Without a name the store's is scheme, host, the datacenter if given, and the
// prefix where it is not quorum. Namespaces and partitions are refused.
func Opener() quorum.Opener {
	return quorum.Opener{Schemes: []string{"consul", "consuls"}, Open: open, Name: nameOf}
}

func nameOf(dsn *url.URL) string {
	query, kept := dsn.Query(), url.Values{}
	for _, key := range []string{"dc", "prefix"} {
		if value := query.Get(key); value != "" && !(key == "prefix" && value == defaultPrefix) {
			kept.Set(key, value)
		}
	}
	name := url.URL{Scheme: dsn.Scheme, Opaque: dsn.Opaque, Host: dsn.Host, RawQuery: kept.Encode()}
	return name.String()
}

func open(_ context.Context, dsn *url.URL) (quorum.Store, error) {
	if dsn.Hostname() == "" || dsn.Opaque != "" || dsn.Path != "" && dsn.Path != "/" {
		return nil, fmt.Errorf("%w: a consul DSN has the form consul://:token@host:port?prefix=quorum", quorum.ErrInvalidOption)
	}
	query := dsn.Query()
	var options []Option
	for key := range query {
		value := query.Get(key)
		switch key {
		case "name", "ca", "cert", "key":
		case "prefix":
			options = append(options, Prefix(value))
		case "dc":
			options = append(options, Datacenter(value))
		case "min-ttl":
			d, err := time.ParseDuration(value)
			if err != nil {
				return nil, fmt.Errorf("%w: min-ttl: %w", quorum.ErrInvalidOption, err)
			}
			options = append(options, MinTTL(d))
		case "ns", "namespace", "partition":
			return nil, fmt.Errorf("%w: %s: namespaces and partitions of Consul Enterprise", quorum.ErrUnsupported, key)
		default:
			return nil, fmt.Errorf("%w: a consul DSN has no setting %q; it has name, prefix, dc, min-ttl, ca, cert and key",
				quorum.ErrInvalidOption, key)
		}
	}
	host := dsn.Host
	if dsn.Port() == "" {
		host += map[string]string{"consul": ":8500", "consuls": ":8501"}[dsn.Scheme]
	}
	scheme := "http"
	transport := &http.Transport{MaxIdleConnsPerHost: idleConnections, IdleConnTimeout: time.Minute}
	if dsn.Scheme == "consuls" {
		scheme = "https"
		config, err := tlsConfig(query)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = config
	}
	if dsn.User.Username() != "" {
		return nil, fmt.Errorf("%w: a consul DSN has no user: write the ACL token as a password, consul://:TOKEN@host", quorum.ErrInvalidOption)
	}
	token, _ := dsn.User.Password()
	client, err := api.NewClient(&api.Config{
		Address: host, Scheme: scheme, HttpClient: &http.Client{Transport: only{transport, token}},
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
	}
	s, err := New(query.Get("name"), client, options...)
	if err != nil {
		return nil, err
	}
	s.owned = connections{transport}
	return s, nil
}

// idleConnections is how many stay open between the calls of a busy process.
const idleConnections = 64

// only makes every request carry what the DSN says, and nothing that the client
// took from the environment.
type only struct {
	base  http.RoundTripper
	token string
}

func (o only) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	r.Header.Del("X-Consul-Token")
	if o.token != "" {
		r.Header.Set("X-Consul-Token", o.token)
	}
	query := r.URL.Query()
	query.Del("ns")
	query.Del("partition")
	r.URL.RawQuery = query.Encode()
	return o.base.RoundTrip(r)
}

type connections struct{ *http.Transport }

// Close closes those that are idle; one in use is closed when its call ends.
func (c connections) Close() error {
	c.CloseIdleConnections()
	return nil
}

func tlsConfig(query url.Values) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := query.Get("ca"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("%w: ca: %w", quorum.ErrInvalidOption, err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%w: ca: %s holds no certificate", quorum.ErrInvalidOption, file)
		}
	}
	cert, key := query.Get("cert"), query.Get("key")
	if (cert == "") != (key == "") {
		return nil, fmt.Errorf("%w: cert and key go together", quorum.ErrInvalidOption)
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%w: cert and key: %w", quorum.ErrInvalidOption, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

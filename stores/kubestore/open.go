package kubestore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/quorumlock/quorum"
)

// Opener returns the [quorum.Opener] of DSNs such as
//
//	kube://locks?kubeconfig=/etc/quorum/east.kubeconfig&name=east
//
// where locks is the namespace. It takes kubeconfig, the path of a file, and
// context, one of its contexts where it is not the current one; name, and prefix
// (see [Prefix]). Without kubeconfig it is the cluster that the process runs in,
// by its service account. Environment variables such as KUBECONFIG count for
// nothing. The store closes its connections.
//
// Without a name the store's is scheme, namespace, the context if given, and the
// prefix where it is not quorum, so members in several clusters need names.
func Opener() quorum.Opener {
	return quorum.Opener{Schemes: []string{"kube"}, Open: open, Name: nameOf}
}

func nameOf(dsn *url.URL) string {
	query, kept := dsn.Query(), url.Values{}
	for _, key := range []string{"context", "prefix"} {
		if value := query.Get(key); value != "" && !(key == "prefix" && value == defaultPrefix) {
			kept.Set(key, value)
		}
	}
	name := url.URL{Scheme: dsn.Scheme, Opaque: dsn.Opaque, Host: dsn.Host, RawQuery: kept.Encode()}
	return name.String()
}

func open(_ context.Context, dsn *url.URL) (quorum.Store, error) {
	if dsn.Hostname() == "" || dsn.Port() != "" || dsn.Opaque != "" || dsn.User != nil || dsn.Path != "" && dsn.Path != "/" {
		return nil, fmt.Errorf("%w: a kube DSN has the form kube://namespace?kubeconfig=path&context=name", quorum.ErrInvalidOption)
	}
	query := dsn.Query()
	var options []Option
	for key := range query {
		switch key {
		case "name", "kubeconfig", "context":
		case "prefix":
			options = append(options, Prefix(query.Get(key)))
		default:
			return nil, fmt.Errorf("%w: a kube DSN has no setting %q; it has name, kubeconfig, context and prefix", quorum.ErrInvalidOption, key)
		}
	}
	config, err := configOf(query.Get("kubeconfig"), query.Get("context"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
	}
	client, connections, err := clientOf(config)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", quorum.ErrInvalidOption, err)
	}
	s, err := New(query.Get("name"), client, dsn.Hostname(), options...)
	if err != nil {
		return nil, err
	}
	s.owned = connections
	return s, nil
}

// configOf says how to reach the cluster.
func configOf(file, name string) (*rest.Config, error) {
	if file == "" {
		if name != "" {
			return nil, errors.New("a context is one of a kubeconfig: give that too")
		}
		config, err := rest.InClusterConfig()
		if errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("this process does not run in a cluster: give kubeconfig, the path of a file")
		}
		return config, err
	}
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: file}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: name}).ClientConfig()
}

// clientOf is a client of Leases and of nothing else: the whole clientset would
// bring the types of all of Kubernetes.
func clientOf(config *rest.Config) (rest.Interface, connections, error) {
	scheme := runtime.NewScheme()
	if err := coordination.AddToScheme(scheme); err != nil {
		return nil, connections{}, err
	}
	meta.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	group := coordination.SchemeGroupVersion
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &group
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.QPS = -1 // a lock that waits for its own client's turn may be over
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, connections{}, err
	}
	client, err := rest.RESTClientForConfigAndClient(config, transport)
	return client, connections{transport}, err
}

type connections struct{ *http.Client }

// Close closes those that are idle; one in use is closed when its call ends.
func (c connections) Close() error {
	c.CloseIdleConnections()
	return nil
}

package kubestore_test

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// kubeconfig is one of a cluster that is not there.
func kubeconfig(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	text := `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: s3cret}}]
contexts: [{name: here, context: {cluster: c, user: u}}, {name: there, context: {cluster: c, user: u}}]
current-context: here
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestR62NamesOfDSNsDifferWhereTheirKeysLieApart(t *testing.T) {
	file := "kubeconfig=" + kubeconfig(t)
	for dsn, want := range map[string]string{
		"kube://locks?" + file:                               "kube://locks",
		"kube://locks/?" + file + "&prefix=quorum":           "kube://locks",
		"kube://locks?" + file + "&context=there":            "kube://locks?context=there",
		"kube://locks?" + file + "&context=there&prefix=b":   "kube://locks?context=there&prefix=b",
		"kube://locks?" + file + "&context=there&name=first": "first",
	} {
		set, err := quorum.Open(t.Context(), []string{dsn}, kubestore.Opener())
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if got := set.Members()[0].Name(); got != want {
			t.Errorf("the store of %s is named %s, want %s", dsn, got, want)
		}
		_ = set.Close()
	}
}

func TestR63OpenerRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Setenv("KUBECONFIG", kubeconfig(t)) // counts for nothing
	file := "kubeconfig=" + kubeconfig(t)
	for dsn, want := range map[string]string{
		"kube:locks":                           "has the form",
		"kube:///?" + file:                     "has the form",
		"kube://locks/folder?" + file:          "has the form",
		"kube://locks:443?" + file:             "has the form",
		"kube://token@locks?" + file:           "has the form",
		"kube://locks?retries=3&" + file:       "retries",
		"kube://locks?prefix=a.b&" + file:      "Prefix",
		"kube://locks?context=nowhere&" + file: "nowhere",
		"kube://locks":                         "give kubeconfig",
		"kube://locks?context=here":            "a context is one of a kubeconfig",
		"kube://locks?kubeconfig=/not/there":   "/not/there",
		"kube://Locks.x?" + file:               "no name of a namespace",
	} {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		query.Set("name", "a")
		u.RawQuery = query.Encode()
		_, err = kubestore.Opener().Open(t.Context(), u)
		if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s gives %v, want ErrInvalidOption and %q", dsn, err, want)
		}
	}
}

func TestBadSettingsFailAtOnce(t *testing.T) {
	var c rest.Interface = &rest.RESTClient{}
	for name, make := range map[string]func() (*kubestore.Store, error){
		"no name":      func() (*kubestore.Store, error) { return kubestore.New("", c, "locks") },
		"no client":    func() (*kubestore.Store, error) { return kubestore.New("a", nil, "locks") },
		"no namespace": func() (*kubestore.Store, error) { return kubestore.New("a", c, "") },
		"no prefix":    func() (*kubestore.Store, error) { return kubestore.New("a", c, "locks", kubestore.Prefix("")) },
		"a dot":        func() (*kubestore.Store, error) { return kubestore.New("a", c, "locks", kubestore.Prefix("a.b")) },
		"a capital":    func() (*kubestore.Store, error) { return kubestore.New("a", c, "locks", kubestore.Prefix("A")) },
		"too long": func() (*kubestore.Store, error) {
			return kubestore.New("a", c, "locks", kubestore.Prefix(strings.Repeat("a", 64)))
		},
	} {
		if _, err := make(); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
}

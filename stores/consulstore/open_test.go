package consulstore_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/consulstore"
)

func TestR62NamesOfDSNsDifferWhereTheirKeysLieApart(t *testing.T) {
	for dsn, want := range map[string]string{
		"consul://h":                            "consul://h",
		"consul://h/":                           "consul://h",
		"consul://:secret@h:1?min-ttl=1s":       "consul://h:1",
		"consul://h?prefix=quorum":              "consul://h",
		"consul://h:1?prefix=other&dc=west":     "consul://h:1?dc=west&prefix=other",
		"consuls://h:1?prefix=other&name=first": "first",
		"consul://[::1]:8500":                   "consul://[::1]:8500",
	} {
		set, err := quorum.Open(t.Context(), []string{dsn}, consulstore.Opener())
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

func TestOpenerRefusesWhatItDoesNotKnow(t *testing.T) {
	for dsn, want := range map[string]error{
		"consul:h":                       quorum.ErrInvalidOption,
		"consul:///x":                    quorum.ErrInvalidOption,
		"consul://h/folder":              quorum.ErrInvalidOption,
		"consul://h?retries=3":           quorum.ErrInvalidOption,
		"consul://h?prefix=a:b":          quorum.ErrInvalidOption,
		"consul://h?prefix=a//b":         quorum.ErrInvalidOption,
		"consul://h?min-ttl=10ms":        quorum.ErrInvalidOption,
		"consul://h?ns=team":             quorum.ErrUnsupported,
		"consul://h?partition=p":         quorum.ErrUnsupported,
		"consuls://h?ca=/does/not/exist": quorum.ErrInvalidOption,
		"consuls://h?cert=/x":            quorum.ErrInvalidOption,
	} {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := consulstore.Opener().Open(t.Context(), u); !errors.Is(err, want) {
			t.Errorf("%s gives %v, want %v", dsn, err, want)
		}
	}
}

func TestBadSettingsFailAtOnce(t *testing.T) {
	c := client(t, "127.0.0.1:1")
	for name, make := range map[string]func() (*consulstore.Store, error){
		"no name":    func() (*consulstore.Store, error) { return consulstore.New("", c) },
		"no client":  func() (*consulstore.Store, error) { return consulstore.New("a", nil) },
		"no prefix":  func() (*consulstore.Store, error) { return consulstore.New("a", c, consulstore.Prefix("")) },
		"a colon":    func() (*consulstore.Store, error) { return consulstore.New("a", c, consulstore.Prefix("a:b")) },
		"two dots":   func() (*consulstore.Store, error) { return consulstore.New("a", c, consulstore.Prefix("a/../b")) },
		"no TTL":     func() (*consulstore.Store, error) { return consulstore.New("a", c, consulstore.MinTTL(0)) },
		"datacenter": func() (*consulstore.Store, error) { return consulstore.New("a", c, consulstore.Datacenter("")) },
	} {
		if _, err := make(); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%s: %v, want ErrInvalidOption", name, err)
		}
	}
}

package quorum_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorum"
)

func TestR64DSNsAreSplitAtBlanksAndAtCommasBetweenThem(t *testing.T) {
	for text, want := range map[string][]string{
		"":                                nil,
		" \t\n":                           nil,
		"redis://a":                       {"redis://a"},
		"redis://a redis://b":             {"redis://a", "redis://b"},
		"redis://a,rediss://b":            {"redis://a", "rediss://b"},
		"redis://a, file:/b ,\nredis://c": {"redis://a", "file:/b", "redis://c"},
		"redis://:p,w@a,redis://b":        {"redis://:p,w@a", "redis://b"},
		"etcd://a:1,b:2,etcd://c:1,d":     {"etcd://a:1,b:2", "etcd://c:1,d"},
		"redis+cluster://a,k8s://b":       {"redis+cluster://a", "k8s://b"},
		" , ":                             nil,
		"redis://a b":                     {"redis://a", "b"},
	} {
		if got := quorum.SplitDSNs(text); !slices.Equal(got, want) {
			t.Errorf("%q gives %q, want %q", text, got, want)
		}
	}
}

func TestR63BadDSNsAreToldWhyAndShownMasked(t *testing.T) {
	for text, want := range map[string]string{
		"redis-a":                           `DSN "xxxxx": it has no scheme`,
		"s3cr3t@a:6379":                     `DSN "xxxxx": it has no scheme`,
		"://s3cr3t@a":                       `DSN "xxxxx": it has no scheme`,
		"10.0.0.1:6379":                     `DSN "xxxxx": it has no scheme`,
		"":                                  `option: the DSN is empty; write scheme://`,
		"test://u:s3cr3t@a:port":            `DSN "test://xxxxx": what follows the colon behind the host is no port`,
		"test://u:s3cr3t/x@a":               `DSN "test://xxxxx": what follows the colon behind the host is no port`,
		"test://u:s3cr3t%zz@a":              `DSN "test://xxxxx": it holds a % that begins no escape`,
		"test://u:s3cr3t<@a:1":              `DSN "test://xxxxx": the user, the password or the host holds a character`,
		"test://a b:1":                      `DSN "test://xxxxx": its host holds a character`,
		"test://u:s3cr3t@a:1\n":             `DSN "test://xxxxx": it holds a control character`,
		"test://u:12/s3cr3t@a":              `DSN "test://xxxxx": it holds an @, a : or a // where its path is`,
		"test://":                           `DSN "test://": it names neither a host nor a path`,
		"test://u:s3cr3t@:1/x?token=s3cr3t": `DSN "test://u:xxxxx@:1/x?token=xxxxx": it has a port and no host`,
	} {
		_, err := quorum.Open(t.Context(), []string{text}, opener(new([]string), nil))
		if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q gives %v; want an invalid option with %q and no password", text, err, want)
		}
	}
}

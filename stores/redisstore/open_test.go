package redisstore_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/redisstore"
)

// Two DSNs whose keys lie apart must not look like one store: their clients
// would both be granted a lock, and nothing would tell.
func TestR62NamesOfDSNsDifferWhereTheirKeysLieApart(t *testing.T) {
	for dsn, want := range map[string]string{
		"redis://h":                             "redis://h",
		"redis://h/":                            "redis://h",
		"redis://h/0":                           "redis://h",
		"redis://h?db=0":                        "redis://h",
		"redis://h/3?db=0":                      "redis://h",
		"redis://h?prefix=quorum":               "redis://h",
		"redis://user:secret@h:1?pool_size=5":   "redis://h:1",
		"redis://h:1/5":                         "redis://h:1/5",
		"redis://h:1/05":                        "redis://h:1/5",
		"redis://h:1?db=5":                      "redis://h:1/5",
		"redis://h:1/3?db=5":                    "redis://h:1/5",
		"redis://h:1?prefix=other":              "redis://h:1?prefix=other",
		"rediss://h:1/5?prefix=other&db=6":      "rediss://h:1/6?prefix=other",
		"redis://h:1/5?prefix=other&name=first": "first",
		"redis://[::1]:1/0":                     "redis://[::1]:1",
		"redis+cluster://h:1?addr=h:2":          "redis+cluster://h:1",
		"rediss+cluster://h:1/0?prefix=other":   "rediss+cluster://h:1?prefix=other",
	} {
		set, err := quorum.Open(t.Context(), []string{dsn}, redisstore.Opener())
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

func TestOpenerRefusesWhatNamesNoHostAndPort(t *testing.T) {
	for _, dsn := range []string{
		"redis:127.0.0.1", "redis:127.0.0.1:6379", "redis:///0", "redis://:6379", "redis://h:1:3", "redis://::1",
		"redis://h:0", "redis://h:65536", "redis://h:port", "redis://h/x", "redis://h?db=x",
		"redis+cluster://h/1", "redis+cluster://h?db=1", "redis+cluster:///", "redis+cluster://h?x=1",
	} {
		u, err := url.Parse(dsn)
		if err != nil {
			continue // not a URL: Open says so
		}
		if _, err := redisstore.Opener().Open(t.Context(), u); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%s gives %v, want ErrInvalidOption", dsn, err)
		}
	}
}

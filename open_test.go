package quorum_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/quorum"
)

const password = "s3cr3t/pass word"

// opened is a store that only has a name, and knows whether it was closed.
type opened struct {
	quorum.Store
	name   string
	closed *[]string
}

func (s *opened) Name() string          { return s.name }
func (s *opened) Limits() quorum.Limits { return quorum.Limits{} }
func (s *opened) Close() error          { *s.closed = append(*s.closed, s.name); return nil }

// opener makes stores that are named as they are told, and fails at "fail".
func opener(closed *[]string, seen *[]*url.URL) quorum.Opener {
	return quorum.Opener{
		Schemes: []string{"test", "tests"},
		Open: func(_ context.Context, dsn *url.URL) (quorum.Store, error) {
			if seen != nil {
				*seen = append(*seen, dsn)
			}
			if dsn.Host == "fail" {
				return nil, fmt.Errorf("dial %s: no such host", dsn)
			}
			return &opened{name: dsn.Query().Get("name"), closed: closed}, nil
		},
	}
}

func TestR62OpenNamesStoresByTheirDSNWithoutSecrets(t *testing.T) {
	escaped := url.UserPassword("user", password).String()
	for _, c := range []struct{ dsn, name string }{
		{"test://a:6379/0", "test://a:6379/0"},
		{"test://a:6379/", "test://a:6379"},
		{"test://" + escaped + "@a:6379/0?pool=3", "test://a:6379/0"},
		{"test://a/0?password=" + url.QueryEscape(password), "test://a/0"},
		{"test://" + escaped + "@a/0?name=first", "first"},
		{"test:/dir", "test:///dir"},
		{"test:///dir", "test:///dir"},
	} {
		var closed []string
		var seen []*url.URL
		set, err := quorum.Open(t.Context(), []string{c.dsn}, opener(&closed, &seen))
		if err != nil {
			t.Fatalf("%s: %v", quorum.MaskDSN(c.dsn), err)
		}
		if got := set.Members()[0].Name(); got != c.name {
			t.Errorf("store of %s is named %q, want %q", quorum.MaskDSN(c.dsn), got, c.name)
		}
		if got, ok := seen[0].User.Password(); strings.Contains(c.dsn, "@") && (!ok || got != password) {
			t.Errorf("%s: the opener was not given the password", quorum.MaskDSN(c.dsn))
		}
	}
}

func TestR62OpenerNamesItsStores(t *testing.T) {
	o := opener(new([]string), nil)
	o.Name = func(dsn *url.URL) string { return dsn.Host + " " + dsn.Query().Get("part") }
	for dsn, want := range map[string]string{"test://a/0?part=1": "a 1", "test://a/0?part=1&name=first": "first"} {
		set, err := quorum.Open(t.Context(), []string{dsn}, o)
		if err != nil {
			t.Fatal(err)
		}
		if got := set.Members()[0].Name(); got != want {
			t.Errorf("store of %s is named %q, want %q", dsn, got, want)
		}
	}
}

func TestR62UnknownSchemeSaysWhatToImport(t *testing.T) {
	_, err := quorum.Open(t.Context(), []string{"redis://a"}, opener(new([]string), nil))
	if !errors.Is(err, quorum.ErrInvalidOption) {
		t.Fatalf("got %v, want ErrInvalidOption", err)
	}
	for _, part := range []string{`"redis"`, "test, tests", "github.com/quorumlock/quorum/stores/redisstore", "store 1 of 1"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
}

func TestR63OpenErrorsShowNoPassword(t *testing.T) {
	escaped := url.UserPassword("user", password).String()
	for _, dsn := range []string{
		"test://" + escaped + "@fail/0",
		"test://fail/0?password=" + url.QueryEscape(password),
		"test://user:" + password + "@a:port/0",  // not a URL
		"test://user:s3cr3t%zz" + "@a/0",         // not a URL
		"user:s3cr3t@a:6379",                     // no scheme that is known
		"other://" + escaped + "@a",              // no scheme that is known
		"test://a:6379 test://" + escaped + "@b", // two in one
	} {
		_, err := quorum.Open(t.Context(), []string{dsn}, opener(new([]string), nil))
		if err == nil {
			t.Errorf("a DSN that cannot be opened was opened")
			continue
		}
		for e := err; e != nil; e = errors.Unwrap(e) {
			if text := fmt.Sprintf("%+v %#v", e, e); strings.Contains(text, "s3cr3t") || strings.Contains(text, "pass word") {
				t.Errorf("the password is shown: %s", text)
			}
		}
		if shown := quorum.MaskDSN(dsn); strings.Contains(shown, "s3cr3t") {
			t.Errorf("MaskDSN shows the password: %s", shown)
		}
	}
}

func TestOpenClosesWhatItMadeWhenItFails(t *testing.T) {
	for what, last := range map[string]string{
		"an opener fails": "test://fail",
		"Combine refuses": "test://a", // a name twice
	} {
		var closed []string
		set, err := quorum.Open(t.Context(), []string{"test://a", "test://b", last}, opener(&closed, nil))
		if err == nil || set != nil {
			t.Fatalf("%s: got a set and error %v", what, err)
		}
		for _, name := range []string{"test://a", "test://b"} {
			if !slices.Contains(closed, name) {
				t.Errorf("%s: %s was not closed", what, name)
			}
		}
	}
}

func TestCloseClosesOnlyWhatOpenMade(t *testing.T) {
	var closed []string
	set, err := quorum.Open(t.Context(), []string{"test://a", "test://b"}, opener(&closed, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Close(); err != nil || !slices.Equal(closed, []string{"test://a", "test://b"}) {
		t.Errorf("Close closed %v with error %v, want both", closed, err)
	}
	closed = nil
	own, err := quorum.Combine(quorum.Consensus(), &opened{name: "mine", closed: &closed})
	if err != nil {
		t.Fatal(err)
	}
	if err := own.Close(); err != nil || len(closed) > 0 {
		t.Errorf("Close closed %v, which Open did not make (error %v)", closed, err)
	}
}

func TestR62MaskDSNChangesNothingElse(t *testing.T) {
	for dsn, want := range map[string]string{
		"redis://a:6379/0?pool=3":       "redis://a:6379/0?pool=3",
		"redis://user@a":                "redis://user@a",
		"etcd://u:pw@a:1,b:2/x":         "etcd://u:xxxxx@a:1,b:2/x",
		"redis://a:1;redis://:pw@b:1":   "redis://xxxxx",
		"redis://a,redis://:pw@b":       "redis://xxxxx",
		"redis://a/:pw":                 "redis://xxxxx",
		"file:/home/a@b/locks":          "file:/home/a@b/locks",
		"consul://a-token@a":            "consul://xxxxx@a",
		"redis://user:pw@a:6379/0":      "redis://user:xxxxx@a:6379/0",
		"redis://a/0?password=pw&db=1":  "redis://a/0?db=1&password=xxxxx",
		"file:/var/lib/quorum/locks":    "file:/var/lib/quorum/locks",
		"://" + password + " not a dsn": "xxxxx",
	} {
		if got := quorum.MaskDSN(dsn); got != want {
			t.Errorf("MaskDSN gives %q, want %q", got, want)
		}
	}
}

func TestOpenRefusesUselessOpeners(t *testing.T) {
	o := opener(new([]string), nil)
	for what, openers := range map[string][]quorum.Opener{
		"no Open":          {{Schemes: []string{"x"}}},
		"a scheme twice":   {o, o},
		"no schemes":       {{Open: o.Open}},
		"nothing returned": {{Schemes: []string{"test"}, Open: func(context.Context, *url.URL) (quorum.Store, error) { return nil, nil }}},
	} {
		if set, err := quorum.Open(t.Context(), []string{"test://a"}, openers...); err == nil || set != nil {
			t.Errorf("%s: Open gave a set, error %v", what, err)
		}
	}
}

func TestR44OpenLabelsStoresByTheirDSN(t *testing.T) {
	var closed []string
	var seen []*url.URL
	set, err := quorum.Open(t.Context(), []string{"test://a?domain=h1", "test://b?domain=h2", "test://c"}, opener(&closed, &seen))
	if err != nil {
		t.Fatal(err)
	}
	if got := set.Members()[0].Limits().Domain + set.Members()[1].Limits().Domain + set.Members()[2].Limits().Domain; got != "h1h2" {
		t.Errorf("the stores' domains together are %q, want h1h2", got)
	}
	if seen[0].Query().Has("domain") {
		t.Errorf("the opener was given %v, and does not know domains", seen[0])
	}
	if err := set.Close(); err != nil || len(closed) != 3 {
		t.Errorf("Close = %v, and closed %v, want all three", err, closed)
	}
	_, err = quorum.Open(t.Context(), []string{"test://a?domain=h", "test://b?domain=h", "test://c"}, opener(&closed, &seen))
	if !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), `domain "h"`) {
		t.Errorf("two of three on one host: %v, want a refusal", err)
	}
}

package config_test

import (
	"context"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/config"
	"github.com/quorumlock/quorum/stores/memstore"
)

// server opens stores in memory under the DSNs of servers: what lies at one
// place and under one prefix is one store.
func server(schemes ...string) quorum.Opener {
	place := func(dsn *url.URL) string {
		return dsn.Scheme + "://" + dsn.Host + dsn.Path + "?" + dsn.Query().Get("prefix")
	}
	made := map[string]*memstore.Store{}
	return quorum.Opener{Schemes: schemes, Name: place, Open: func(_ context.Context, dsn *url.URL) (quorum.Store, error) {
		at := place(dsn)
		if made[at] == nil {
			made[at] = memstore.New(dsn.Query().Get("name"))
		}
		return made[at], nil
	}}
}

func TestR65ResourcesThatShareAStoreInTwoSetsAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		text string
		says []string // what the error must say; nothing where the file is fine
	}{
		"one of three": {"a: redis://r\nb: [redis://r, redis://s, redis://t]",
			[]string{`resources "a" and "b"`, "store redis://r", "their lists of stores", "?prefix="}},
		"password and options": {"a: redis://u:hunter2@r\nb: ['redis://r?password=hunter2', redis://s, redis://t]",
			[]string{`resources "a" and "b"`, "redis://r?password=xxxxx", "their lists of stores"}},
		"strategy":        {"a: [redis://r, redis://s]\nb: {stores: [redis://s, redis://r], strategy: unanimous}", []string{"differ in strategy"}},
		"max_ttl":         {"a: redis://r\nb: {stores: redis://r, max_ttl: 2m}", []string{`"a" and "b"`, "differ in max_ttl"}},
		"name":            {"a: redis://r\nb: redis://r?name=x", []string{"their lists of stores"}},
		"memory":          {"a: memory://m\nb: [memory://m, memory://n, memory://o]", []string{"memory://m", "a store for each"}},
		"the same set":    {"a: [redis://r, redis://s]\nb: {stores: [redis://s, redis://r], max_ttl: 1m, ttl: 5s}", nil},
		"another prefix":  {"a: redis://r\nb: ['redis://r?prefix=b', redis://s, redis://t]", nil},
		"no common store": {"a: redis://r\nb: redis://s", nil},
	} {
		t.Run(name, func(t *testing.T) {
			set, err := config.Load(t.Context(), write(t, "locks.yaml", row.text), nil, server("redis"), memstore.Opener())
			if row.says == nil {
				if err != nil {
					t.Fatal(err)
				}
				takeEach(t, set, "a", "b")
				return
			}
			if err == nil {
				_ = set.Close(t.Context())
				t.Fatal("the file was accepted")
			}
			for _, part := range row.says {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%v; it lacks %q", err, part)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the password is shown: %v", err)
			}
		})
	}
}

// takeEach takes a lock of each resource, which a store that serves another set
// refuses.
func takeEach(t *testing.T, set *config.Set, names ...string) {
	t.Helper()
	for _, name := range names {
		lease, err := resource(t, set, name).TryAcquire(t.Context(), "key of "+name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := set.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestR65ReloadNamesResourcesThatWouldClash(t *testing.T) {
	path := write(t, "locks.yaml", "a: memory://m\nb: memory://n\n")
	set := load(t, path)
	if err := os.WriteFile(path, []byte("a: memory://m\nb: [memory://m, memory://n]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := set.Reload(nil); err == nil || !strings.Contains(err.Error(), `resources "a" and "b" share the store memory://m`) {
		t.Errorf("got %v, want both resources and the store named", err)
	}
}

// The first examples of the page and of the package's documentation.
func TestR85SettingsOfTheDocumentationWork(t *testing.T) {
	for file, example := range map[string]*regexp.Regexp{
		"../docs/settings.md": regexp.MustCompile("(?s)```yaml\n(.*?)```"),
		"config.go":           regexp.MustCompile(`(?s)and not in code:\n//\n(.*?)\n//\n`),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := example.FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s has no example", file)
		}
		yaml := strings.ReplaceAll(string(found[1]), "//\t", "")
		set, err := config.Load(t.Context(), write(t, "locks.yaml", yaml), nil, server("redis"), server("postgres"), server("etcd"))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		takeEach(t, set, "default", "invoices", "reports")
	}
}

package config_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/config"
	"github.com/quorumlock/quorum/stores/memstore"
)

// write makes a settings file.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, path string, environ ...string) *config.Set {
	t.Helper()
	set, err := config.Load(t.Context(), path, environ, memstore.Opener())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = set.Close(context.Background()) })
	return set
}

func resource(t *testing.T, set *config.Set, name string) *config.Resource {
	t.Helper()
	r, err := set.Resource(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var files = map[string]string{
	"locks.yaml": "default: memory://a\ninvoices: [memory://b, memory://c, memory://d]\n" +
		"reports:\n  stores: [memory://e, memory://f]\n  strategy: unanimous\n  ttl: 30s\n  in_flight: 9\n  order: all at once\n  fail_on_outage: true\n",
	"locks.json": `{"default": "memory://a", "invoices": ["memory://b", "memory://c", "memory://d"],
		"reports": {"stores": ["memory://e", "memory://f"], "strategy": "unanimous", "ttl": "30s", "in_flight": 9, "order": "all at once", "fail_on_outage": true}}`,
	"locks.toml": "default = 'memory://a'\ninvoices = ['memory://b', 'memory://c', 'memory://d']\n" +
		"[reports]\nstores = ['memory://e', 'memory://f']\nstrategy = 'unanimous'\nttl = '30s'\nin_flight = 9\norder = 'all at once'\nfail_on_outage = true\n",
}

func TestR62NamedResourcesFromEachFormat(t *testing.T) {
	for name, text := range files {
		t.Run(name, func(t *testing.T) {
			set := load(t, write(t, name, text))
			for _, row := range []struct {
				resource string
				votes    int
				ttl      time.Duration
			}{{"default", 1, 15 * time.Second}, {"invoices", 3, 15 * time.Second}, {"reports", 2, 30 * time.Second}} {
				lease, err := resource(t, set, row.resource).TryAcquire(t.Context(), "k")
				if err != nil {
					t.Fatal(err)
				}
				if left := lease.Remaining(); len(lease.Votes()) != row.votes || left <= row.ttl-10*time.Second || left > row.ttl {
					t.Errorf("%s: %d votes, %v left; want %d and nearly %v", row.resource, len(lease.Votes()), left, row.votes, row.ttl)
				}
				if err := lease.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if _, err := set.Resource("report"); !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), "default, invoices, reports") {
				t.Errorf("an unknown resource: %v", err)
			}
		})
	}
}

func TestR64Environment(t *testing.T) {
	path := write(t, "locks.yaml", "daily: memory://a\ndaily-check: memory://b\n")
	set := load(t, path, "QUORUM_STORES=memory://x memory://y,memory://z", "QUORUM_DAILY_TTL=20s", "QUORUM_DAILY_IN_FLIGHT=9", "QUORUM_DAILY_CHECK_TTL=40s",
		"QUORUM_DAILY_TLT=1s", "QUORUM_KEY=k", "QUORUM_TOKEN=7", "QUORUM_VALID_UNTIL=1", "PATH=/bin")
	if got := set.Unread(); !slices.Equal(got, []string{"QUORUM_DAILY_TLT"}) {
		t.Errorf("unread variables: %v", got)
	}
	for name, ttl := range map[string]time.Duration{"daily": 20 * time.Second, "daily-check": 40 * time.Second, "default": 15 * time.Second} {
		lease, err := resource(t, set, name).Acquire(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		if left := lease.Remaining(); left > ttl || left < ttl-5*time.Second {
			t.Errorf("%s: %v left, want nearly %v", name, left, ttl)
		}
	}
	if n := len(must(resource(t, set, "default").TryAcquire(t.Context(), "other")).Votes()); n != 3 {
		t.Errorf("the default resource has %d stores, want the environment's 3", n)
	}
	t.Setenv("QUORUM_STORES", "memory://nobody-asked")
	if _, err := load(t, path).Resource("default"); err == nil {
		t.Error("the environment was read without being given")
	}
}

func must(lease *quorum.Lease, err error) *quorum.Lease {
	if err != nil {
		panic(err)
	}
	return lease
}

func TestR65SettingsAreCheckedAtStart(t *testing.T) {
	const secret = "hunter2"
	for name, row := range map[string]struct {
		text, names string // what the error must say
	}{
		"unknown field":       {"reports: {stores: memory://a, tll: 3s}", `resource "reports" has no field "tll"`},
		"no stores":           {"reports: {ttl: 3s}", `resource "reports": stores`},
		"TTL without unit":    {"reports: {stores: memory://a, ttl: 30}", `resource "reports": ttl`},
		"TTL below zero":      {"reports: {stores: memory://a, ttl: -3s}", `resource "reports"`},
		"TTL above MaxTTL":    {"reports: {stores: memory://a, ttl: 3h}", `resource "reports"`},
		"strategy":            {"reports: {stores: memory://a, strategy: most}", `resource "reports": strategy`},
		"too weak a strategy": {"reports: {stores: [memory://a, memory://b, memory://c, memory://d], strategy: at least 2}", `resource "reports"`},
		"order":               {"reports: {stores: memory://a, order: random}", `resource "reports": order`},
		"a count":             {"reports: {stores: memory://a, in_flight: many}", `resource "reports": in_flight`},
		"a count of nothing":  {"reports: {stores: memory://a, in_flight: 0}", `resource "reports"`},
		"flag":                {"reports: {stores: memory://a, cluster: perhaps}", `resource "reports": cluster`},
		"a store twice":       {"reports: [memory://a, memory://a]", `resource "reports"`},
		"unknown scheme":      {"reports: nfs://u:" + secret + "@host/x", `resource "reports": stores`},
		"no DSN":              {"reports: [{url: 'memory://u:" + secret + "@a'}]", `resource "reports": stores`},
		"bad DSN":             {"reports: 'memory://u:" + secret + "@a:port'", `resource "reports": stores: quorum: open store 1 of 1: invalid option: DSN "memory://xxxxx": what follows the colon`},
		"number as stores":    {"reports: 3", `resource "reports": stores: want a text or a list of texts, not a number`},
		"table as label":      {"reports: {stores: memory://a, label: {a: b}}", `resource "reports": label: want a text, not a table`},
		"? without quotes":    {"reports: [memory://a, memory://b?name=x]", "not well-formed; in YAML's [ ] a DSN with a ? stands in quotes"},
		"malformed":           {"reports: [memory://u:" + secret + "@a", "not well-formed"},
		"reach":               {"reports: {stores: memory://a, cluster: true}", `resource "reports"`},
	} {
		_, err := config.Load(t.Context(), write(t, "locks.yaml", row.text), nil, memstore.Opener())
		if err == nil || !strings.Contains(err.Error(), row.names) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v; want %q in it and no password", name, err, row.names)
		}
	}
	_, err := config.Load(t.Context(), "", []string{"QUORUM_STORES=memory://a", "QUORUM_TTL=soon"}, memstore.Opener())
	if err == nil || !strings.Contains(err.Error(), "variable QUORUM_TTL") {
		t.Errorf("a bad variable: %v", err)
	}
	for _, path := range []string{"locks.ini", filepath.Join(t.TempDir(), "missing.yaml")} {
		if _, err := config.Load(t.Context(), path, nil); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestR64NewTTLIsOfNewLeasesOnly(t *testing.T) {
	path := write(t, "locks.yaml", "reports: {stores: memory://a, ttl: 20s}\n")
	set := load(t, path)
	reports := resource(t, set, "reports")
	old := must(reports.Acquire(t.Context(), "old"))
	change := func(text string) error {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return set.Reload(nil)
	}
	var wg sync.WaitGroup
	for i := range 8 { // leases are taken meanwhile
		wg.Add(1)
		go func() {
			defer wg.Done()
			for j := range 20 {
				lease, err := reports.TryAcquire(t.Context(), fmt.Sprint(i, "-", j))
				if err != nil {
					t.Error(err)
					return
				}
				_ = lease.Release(t.Context())
			}
		}()
	}
	if err := change("reports: {stores: memory://a, ttl: 50s}\n"); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if left := old.Remaining(); left > 20*time.Second {
		t.Errorf("the old lease has %v left", left)
	}
	if left := must(reports.Acquire(t.Context(), "new")).Remaining(); left < 40*time.Second {
		t.Errorf("a new lease has %v left, want nearly 50s", left)
	}
	for text, field := range map[string]string{
		"reports: {stores: memory://b, ttl: 30s}":                  "stores",
		"reports: {stores: memory://a, max_ttl: 2m}":               "max_ttl",
		"reports: {stores: memory://a}\nother: memory://b":         "resources",
		"reports: {stores: memory://a, ttl: 3h}":                   "TTL",
		"reports: {stores: memory://a, strategy: unanimous}":       "strategy",
		"reports: {stores: memory://a, ttl: 30s, cluster: true}\n": "cluster",
		"reports: {stores: memory://a, in_flight: 7}":              "in_flight",
	} {
		if err := change(text); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want an error that names %s", text, err, field)
		}
	}
	if left := must(reports.Acquire(t.Context(), "newer")).Remaining(); left < 40*time.Second {
		t.Errorf("after refused changes a lease has %v left, want nearly 50s", left)
	}
}

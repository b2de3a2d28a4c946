package etcdstore_test

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/etcdstore"
)

func TestR62NamesOfDSNs(t *testing.T) {
	for dsn, want := range map[string]string{
		"etcd://h":                                    "etcd://h:2379",
		"etcd://h/":                                   "etcd://h:2379",
		"etcd://h:1?prefix=quorum":                    "etcd://h:1",
		"etcd://user:secret@b:1,a:2/":                 "etcd://a:2,b:1",
		"etcd://a:2,b:1":                              "etcd://a:2,b:1",
		"etcds://h:1?prefix=other":                    "etcds://h:1?prefix=other",
		"etcd://h:1?prefix=other&name=first":          "first",
		"etcd://[::1]:1":                              "etcd://[::1]:1",
		"etcd://10.0.0.1:2379,10.0.0.2,10.0.0.1:2379": "etcd://10.0.0.1:2379,10.0.0.2:2379",
	} {
		set, err := quorum.Open(t.Context(), []string{dsn}, etcdstore.Opener())
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
			continue
		}
		if got := set.Members()[0].Name(); got != want {
			t.Errorf("the store of %s is named %s, want %s", dsn, got, want)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenerRefusesWhatMakesNoSense(t *testing.T) {
	for _, dsn := range []string{
		"etcd:127.0.0.1", "etcd:///", "etcd://:2379", "etcd://h:", "etcd://h/path", "etcd://h#x", "etcd://h?retries=3",
		"etcd://h?cacert=x", "etcds://h?cacert=missing.pem", "etcds://h?cert=missing.pem", "etcd://h?prefix=", "etcd://h?prefix=a/",
	} {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		query := u.Query()
		query.Set("name", "a")
		u.RawQuery = query.Encode()
		if _, err := etcdstore.Opener().Open(t.Context(), u); !errors.Is(err, quorum.ErrInvalidOption) {
			t.Errorf("%s gives %v, want ErrInvalidOption", dsn, err)
		}
	}
}

func TestR57ClientIsNeverClosed(t *testing.T) {
	_, c, _ := fresh(t)
	s, err := etcdstore.New("b", c, etcdstore.Prefix("other"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := quorum.New(s)
	if err == nil {
		err = errors.Join(l.Close(t.Context()), s.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Get(t.Context(), "k"); err != nil {
		t.Errorf("the client after the store's end: %v", err)
	}
	for _, wrong := range []error{second(etcdstore.New("", c)), second(etcdstore.New("a", nil))} {
		if !errors.Is(wrong, quorum.ErrInvalidOption) {
			t.Errorf("New gives %v, want ErrInvalidOption", wrong)
		}
	}
}

func TestR61LabelIsShownAndTheOwnerIsNot(t *testing.T) {
	_, _, s := fresh(t)
	r := ask("k", owner())
	r.Label = "host-7 pid 4711"
	g := mustAcquire(t, s, r)
	state, err := s.Inspect(t.Context(), r)
	if err != nil || len(state.Holders) != 1 {
		t.Fatal(state, err)
	}
	h := state.Holders[0]
	if h.Label != r.Label || h.Token != g.Token || h.Owner != r.Owner.Digest() || h.Left <= 0 || h.Left > maxTTL+time.Second {
		t.Errorf("%+v", h)
	}
	if strings.Contains(fmt.Sprintf("%+v", state), r.Owner.Hex()) {
		t.Error("Inspect shows the owner's ID")
	}
}

func TestAdvice(t *testing.T) {
	_, _, s := fresh(t)
	if all := s.Advice(); len(all) != 0 {
		t.Errorf("a fresh server of the tested version gives the advice %q", all)
	}
	for what, status := range map[string]*etcdserverpb.StatusResponse{
		"3.5.10 or newer":               {Version: "3.5.9"},
		"uses 1700 of its quota":        {Version: "3.7.3", DbSizeInUse: 1700 << 20, DbSizeQuota: 2 << 30},
		"raised an alarm: NOSPACE of 1": {Version: "3.7.3", Errors: []string{"NOSPACE of 1"}},
	} {
		if all := etcdstore.AdviceOf(status); len(all) != 1 || !strings.Contains(all[0], what) {
			t.Errorf("the advice is %q, want one that says %q", all, what)
		}
	}
}

// What the page about stores says.
func TestR83DocumentedLimits(t *testing.T) {
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcdstore.New("a", new(clientv3.Client))
	if err != nil {
		t.Fatal(err)
	}
	want := quorum.Limits{
		MinTTL: time.Second, Grain: time.Second, MaxKey: 512, Reach: quorum.ReachCluster, Shares: true, Watches: true, Queues: true,
		Forgets: true,
	}
	l := s.Limits()
	if l != want {
		t.Errorf("Limits = %+v, want %+v", l, want)
	}
	// The bound after a crash: TestR14KilledHolderIsFreedWithinTheBound. The
	// trips: TestRoundTrips. The permissions: TestF089TokenThatExpiresIsRenewed.
	row := fmt.Sprintf("| etcd | %v, %v | the server's, that leads | yes | yes | nothing is forgotten; every vote lasts its TTL from then | "+
		"TTL in whole seconds and one second | 2, 1, 1, 1 | readwrite on the keys that begin with the prefix and a slash |", l.MinTTL, l.Grain)
	if !strings.Contains(string(page), row) {
		t.Errorf("docs/stores.md lacks the row %q", row)
	}
}

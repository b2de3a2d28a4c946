package kubestore_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	coordination "k8s.io/api/coordination/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// TestR46RestoredObjectsAreQuarantined puts Leases back from a dump, as Velero
// and kubectl do: under fresh resource versions, so that only the record's UID
// tells. A client that saw nothing of before notices too.
func TestR46RestoredObjectsAreQuarantined(t *testing.T) {
	s, node := fresh(t)
	newTimes(s)
	admin := client(t, node, nil)
	cycle := func() int64 {
		a := ask("k", owner())
		defer mustRelease(t, s, a)
		return mustAcquire(t, s, a).Token
	}
	cycle()
	dump := dumped(t, node)
	var token int64
	for range 3 {
		token = cycle()
	}
	if err := admin.Delete().Namespace(namespace).Resource("leases").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	for _, l := range dump {
		l.ResourceVersion, l.UID = "", ""
		if err := admin.Post().Namespace(namespace).Resource("leases").Body(&l).Do(t.Context()).Error(); err != nil {
			t.Fatal(err)
		}
	}
	newcomer := open(t, node.Kubeconfig(node.Admin))
	x := newTimes(newcomer)
	leave(t, newcomer, x, 0)
	if g := mustAcquire(t, newcomer, ask("k", owner())); g.Token <= token {
		t.Errorf("token %d after the Leases were put back, %d before", g.Token, token)
	}
	_, err := s.Acquire(t.Context(), ask("another", owner())) // told once, answered once
	wantOutcome(t, err, quorum.OutcomeGranted)
}

func dumped(t *testing.T, node *testserver.LeasesNode) []coordination.Lease {
	t.Helper()
	var list coordination.LeaseList
	if err := client(t, node, nil).Get().Namespace(namespace).Resource("leases").Do(t.Context()).Into(&list); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// TestR46RecordNotesItsLease: a record keeps the UID of its Lease from the call
// that made it, and one without is noted, and no reason for a quarantine.
func TestR46RecordNotesItsLease(t *testing.T) {
	const record = "quorumlock.github.io/record"
	node := testserver.Leases(t)
	s := open(t, node.Kubeconfig(node.Admin))
	admin := client(t, node, nil)
	noted := func() (l coordination.Lease, ok bool) {
		t.Helper()
		name := kubestore.SetName("quorum")
		if err := admin.Get().Namespace(namespace).Resource("leases").Name(name).Do(t.Context()).Into(&l); err != nil {
			t.Fatal(err)
		}
		return l, strings.Contains(l.Annotations[record], `"lease":"`+string(l.UID)+`"`)
	}
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeQuarantined)
	l, ok := noted()
	if !ok {
		t.Errorf("the record that Acquire made: %s", l.Annotations[record])
	}
	declareNew(t, s)
	if l, ok = noted(); !ok {
		t.Errorf("the record that votes: %s", l.Annotations[record])
	}
	l.Annotations[record] = strings.Replace(l.Annotations[record], `"lease":"`+string(l.UID)+`"`, `"lease":""`, 1)
	put(t, admin, &l)
	mustAcquire(t, s, ask("k", owner()))
	if l, ok = noted(); !ok {
		t.Errorf("the record that had no UID: %s", l.Annotations[record])
	}
}

// TestWatchOfAServerThatForgetsEnds: whoever asks for the watch pauses before it
// asks again, so one that the server ends at once, by whatever answer, is an error.
func TestWatchOfAServerThatForgetsEnds(t *testing.T) {
	node := testserver.Leases(t)
	gone := meta.Status{
		TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusFailure,
		Code: http.StatusGone, Reason: meta.StatusReasonExpired,
	}
	asked := 0
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := store(t, client(t, node, func(rt http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if r.URL.Query().Get("watch") == "" {
				return rt.RoundTrip(r)
			}
			if asked++; asked == 10 {
				cancel()
			}
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusGone)
			return w.Result(), json.NewEncoder(w).Encode(gone)
		})
	}))
	newTimes(s) // on which no time passes, however slow the machine is
	err := s.Watch(ctx, ask("k", quorum.Owner{}), func(quorum.Wake) {})
	if err == nil || !strings.Contains(err.Error(), "at once") || asked != 1 {
		t.Errorf("a server that answered 410 was asked %d times: %v", asked, err)
	}
}

package kubestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/internal/testserver"
	"github.com/quorumlock/quorum/stores/kubestore"
)

// TestR81RefusedClientIsNoContention asks the real server for what its Role does
// not allow.
func TestR81RefusedClientIsNoContention(t *testing.T) {
	role := strings.Replace(documented(t), "create, ", "", 1)
	node := testserver.Leases(t, testserver.LeasesRole(role))
	admin := open(t, node.Kubeconfig(node.Admin))
	declareNew(t, admin)
	for name, c := range map[string]struct{ token, namespace, want string }{
		"not allowed to create": {node.User, namespace, "give it get, list, watch, create, update and delete"},
		"another namespace":     {node.User, "other", "give it get, list, watch, create, update and delete"},
		"no such token":         {"unknown-s3cret", namespace, "does not accept the client's credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, node.Kubeconfig(c.token), "namespace", c.namespace)
			r := ask("k", owner())
			_, err := s.Acquire(t.Context(), r)
			wantOutcome(t, err, quorum.OutcomeUndelivered)
			if errors.Is(err, quorum.ErrHeld) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `kube store a: acquire "k"`) {
				t.Errorf("%v, want one that says %s", err, c.want)
			}
			hides(t, err, c.token, r.Owner.Hex())
		})
	}
}

func hides(t *testing.T, err error, secrets ...string) {
	t.Helper()
	for _, secret := range secrets {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
			t.Errorf("R63: the error shows %q", secret)
		}
	}
}

// TestR81TroubleOfTheServerIsTold has a server answer each write of a name by
// one kind of trouble.
func TestR81TroubleOfTheServerIsTold(t *testing.T) {
	node := testserver.Leases(t)
	for name, c := range map[string]struct {
		code int
		is   meta.StatusReason
		want string
		left quorum.Outcome
	}{
		"too many requests": {http.StatusTooManyRequests, meta.StatusReasonTooManyRequests, "priority and fairness", quorum.OutcomeUndelivered},
		"etcd is away":      {http.StatusInternalServerError, meta.StatusReasonInternalError, "etcd", quorum.OutcomeUnknown},
		"unavailable":       {http.StatusServiceUnavailable, meta.StatusReasonServiceUnavailable, "cannot answer now", quorum.OutcomeUnknown},
		"timeout":           {http.StatusGatewayTimeout, meta.StatusReasonTimeout, "did not finish in time", quorum.OutcomeUnknown},
		"too large":         {http.StatusRequestEntityTooLarge, meta.StatusReasonRequestEntityTooLarge, "too many readers", quorum.OutcomeUndelivered},
		"no answer":         {0, "", "context deadline exceeded", quorum.OutcomeUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			var asked int
			trouble := roundTripper(func(r *http.Request) (*http.Response, error) {
				asked++
				if c.code == 0 {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				w := httptest.NewRecorder()
				w.Header().Set("Content-Type", "application/json")
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(c.code)
				return w.Result(), json.NewEncoder(w).Encode(meta.Status{
					TypeMeta: meta.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: meta.StatusFailure, Code: int32(c.code), Reason: c.is,
				})
			})
			on := false
			s := store(t, client(t, node, func(rt http.RoundTripper) http.RoundTripper {
				return roundTripper(func(r *http.Request) (*http.Response, error) {
					if on && r.Method == http.MethodPut {
						return trouble(r)
					}
					return rt.RoundTrip(r)
				})
			}))
			if step, err := s.ReadStep(t.Context(), ask("", quorum.Owner{})); err != nil {
				t.Fatal(err)
			} else if step.Quarantine != "" {
				declareNew(t, s)
			}
			on = true
			r := ask(name, owner())
			if c.code == 0 {
				r.Limit = time.Second
			}
			_, err := s.Acquire(t.Context(), r)
			wantOutcome(t, err, c.left)
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want one that says %q", err, c.want)
			}
			if asked != 1 {
				t.Errorf("the write was sent %d times, want once: the caller's limit is short", asked)
			}
			hides(t, err, node.Admin, r.Owner.Hex())
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestR81NobodyListens(t *testing.T) {
	s := open(t, kubeconfig(t))
	_, err := s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	hides(t, err, "s3cret")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Acquire(ctx, ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
}

// TestOpenerInACluster takes the account of the process it runs in, and nothing
// of the environment's kubeconfig. The files are where Kubernetes puts them, so
// it is only told that they are missing here.
func TestOpenerInACluster(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
	t.Setenv("KUBERNETES_SERVICE_PORT", "1")
	t.Setenv("KUBECONFIG", kubeconfig(t))
	_, err := quorum.Open(t.Context(), []string{"kube://locks?name=a"}, kubestore.Opener())
	if !errors.Is(err, quorum.ErrInvalidOption) || !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join("serviceaccount", "token")) {
		t.Errorf("%v, want one that names the account's token", err)
	}
}

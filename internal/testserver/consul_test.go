//go:build unix

package testserver

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// kv asks a server for a key, or writes it where value is not empty.
func kv(t *testing.T, n *ConsulNode, method, value string) (text string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+n.Addr+"/v1/kv/a?raw&consistent", strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Timeout: 2 * time.Second}
	defer client.CloseIdleConnections()
	reply, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	return reply.Status + " " + string(body), err
}

func TestConsulKeepsOrEmptiesItsDisk(t *testing.T) {
	n := Consul(t)
	if got, err := kv(t, n, http.MethodPut, "b"); err != nil || !strings.HasPrefix(got, "200") {
		t.Fatalf("writing a key answered %q, %v", got, err)
	}
	n.Stop()
	if got, err := kv(t, n, http.MethodGet, ""); err == nil {
		t.Fatalf("a stopped server answered %q", got)
	}
	n.Restart()
	if got, err := kv(t, n, http.MethodGet, ""); got != "200 OK b" {
		t.Errorf("after kill -9 the key reads %q, %v", got, err)
	}
	n.Stall()
	if got, err := kv(t, n, http.MethodGet, ""); err == nil {
		t.Errorf("a stalled server answered %q", got)
	}
	n.Resume()
	n.RestartEmpty()
	if got, err := kv(t, n, http.MethodGet, ""); err != nil || !strings.HasPrefix(got, "404") {
		t.Errorf("after an empty restart the key reads %q, %v", got, err)
	}
}

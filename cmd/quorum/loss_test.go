//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum/internal/testserver"
)

// family is a script whose shell stays the parent of: a child, a grandchild, a
// child in a session of its own, one that is an orphan in a session of its
// own, and one that does not listen to SIGTERM. It writes their numbers.
func family(file string) string {
	return `sleep 1000 & echo $! >>` + file + `
		(sleep 1000; true) & echo $! >>` + file + `
		setsid sleep 1000 & echo $! >>` + file + `
		(setsid sh -c 'echo $$ >>` + file + `; sleep 1000; true' &)
		sh -c 'trap "" TERM; echo $$ >>` + file + `; while :; do sleep 0.05; done' &
		echo $$ >>` + file + `
		wait; true`
}

const familySize = 6

func TestR67F044LossEndsTheWholeFamilyBeforeValidityEnds(t *testing.T) {
	t.Parallel()
	nodes, set := newRedisSet(t, 3)
	file := filepath.Join(t.TempDir(), "pids")
	const ttl = 4 * time.Second
	r := begin(t, set, "run", "--ttl", ttl.String(), "key", "--", "sh", "-c", family(file))
	all := pids(t, file, familySize)
	nodes[0].Stop()
	nodes[1].Stop()
	// What was confirmed last was asked for before now, so its validity ends
	// before a TTL from now.
	end := time.Now().Add(ttl)
	eventually(t, time.Until(end), "the command and its descendants are gone", func() bool {
		for _, pid := range all {
			if alive(pid) {
				return false
			}
		}
		return true
	})
	r.expect(codeLost)
	if !strings.Contains(r.stderr.String(), "quorum: lock lost") {
		t.Errorf("the loss is not told:\n%s", r.stderr)
	}
}

func TestR67ObedientCommandGetsItsGrace(t *testing.T) {
	t.Parallel()
	nodes, set := newRedisSet(t, 1)
	r := begin(t, set, "run", "--ttl", "3s", "--margin", "1s", "--grace", "800ms", "key", "--", "sh", "-c",
		`trap 'sleep 0.2; echo cleaned up; exit 0' TERM; echo started; while :; do sleep 0.01; done`)
	eventually(t, 10*time.Second, "the command runs", func() bool { return strings.Contains(r.stdout.String(), "started") })
	nodes[0].Stop()
	if r.expect(codeLost); !strings.Contains(r.stdout.String(), "cleaned up") {
		t.Errorf("the command could not clean up: %s\n%s", r.stdout, r.stderr)
	}
}

func TestF152LossHasItsOwnCodeWhateverTheCommandsIs(t *testing.T) {
	t.Parallel()
	nodes, set := newRedisSet(t, 1)
	r := begin(t, set, "run", "--ttl", "2s", "key", "--", "sh", "-c", `trap 'exit 0' TERM; echo started; while :; do sleep 0.01; done`)
	eventually(t, 10*time.Second, "the command runs", func() bool { return strings.Contains(r.stdout.String(), "started") })
	nodes[0].Stop()
	r.expect(codeLost)
}

// TestF043CutOffCommandIsGoneBeforeTheNextStarts cuts one quorum off from all
// stores, as a firewall does that drops, while another waits.
func TestF043CutOffCommandIsGoneBeforeTheNextStarts(t *testing.T) {
	t.Parallel()
	_, set := newRedisSet(t, 3)
	var cut []*testserver.Proxy
	near := set
	for _, dsn := range strings.Fields(set) {
		addr := strings.TrimPrefix(dsn[:strings.LastIndex(dsn, "/")], "redis://")
		p := testserver.NewProxy(t, addr)
		cut = append(cut, p)
		near = strings.Replace(near, addr, p.Addr, 1)
	}
	beats, started := filepath.Join(t.TempDir(), "beats"), filepath.Join(t.TempDir(), "started")
	first := begin(t, near, "run", "--ttl", "3s", "key", "--", "sh", "-c",
		`trap "" TERM; while :; do date +%s%N >`+beats+`.new; mv `+beats+`.new `+beats+`; sleep 0.005; done`)
	eventually(t, 10*time.Second, "the first command runs", func() bool { _, err := os.Stat(beats); return err == nil })
	second := begin(t, set, "run", "--ttl", "3s", "key", "--", "sh", "-c", "date +%s%N >"+started)
	for _, p := range cut {
		p.Silence()
	}
	second.expect(0)
	first.expect(codeLost)
	last, begun := readTime(t, beats), readTime(t, started)
	if !last.Before(begun) {
		t.Errorf("the first command still ran %v after the second had started", last.Sub(begun))
	}
}

func readTime(t *testing.T, file string) time.Time {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, ns)
}

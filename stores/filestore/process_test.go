package filestore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
)

// roleEnv makes this test binary one of the processes of a test: role, then
// directory.
const roleEnv = "FILESTORE_TEST_ROLE"

func TestMain(m *testing.M) {
	role, dir, ok := strings.Cut(os.Getenv(roleEnv), " ")
	if !ok {
		os.Exit(m.Run())
	}
	s, err := New("host", dir)
	if err == nil {
		switch role {
		case "contend":
			err = contend(s, 50)
		case "hammer":
			err = hammer(s)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func start(t *testing.T, role, dir string) (*exec.Cmd, io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), roleEnv+"="+role+" "+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out
}

// ownerOf makes owners of several processes differ, as random ones do.
func ownerOf(r quorum.Request) quorum.Request {
	copy(r.Owner.ID[8:], strconv.Itoa(os.Getpid()))
	return r
}

// tryUntilHeld polls, as a Locker does.
func tryUntilHeld(ctx context.Context, s *Store, r quorum.Request) (quorum.Grant, error) {
	for {
		g, err := s.Acquire(ctx, r)
		if !errors.Is(err, quorum.ErrHeld) {
			return g, err
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return g, err
		}
	}
}

// contend takes one lock so often. While it holds it, it alone may have the
// file beside the directory, and it writes its token to a common list.
func contend(s *Store, times int) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	alone, list := s.dir.path+".alone", s.dir.path+".tokens"
	for range times {
		r := ownerOf(request("report"))
		g, err := tryUntilHeld(ctx, s, r)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(alone, os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("two holders: %w", err)
		}
		tokens, err := os.OpenFile(list, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintln(tokens, g.Token)
		}
		err = errors.Join(err, tokens.Close(), f.Close(), os.Remove(alone), s.Release(ctx, r))
		if err != nil {
			return err
		}
	}
	return nil
}

func TestF019ProcessesOfOneHostExcludeEachOther(t *testing.T) {
	const processes, times = 4, 50
	dir := newDir(t)
	var all []*exec.Cmd
	for range processes {
		cmd, _ := start(t, "contend", dir)
		all = append(all, cmd)
	}
	for _, cmd := range all {
		if err := cmd.Wait(); err != nil {
			t.Errorf("a process: %v", err)
		}
	}
	last, n := int64(0), 0
	for line := range strings.Lines(string(readFile(t, dir+".tokens"))) {
		token, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || token <= last {
			t.Fatalf("token %q after %d, %v; want tokens to grow", line, last, err)
		}
		last, n = token, n+1
	}
	if n != processes*times {
		t.Errorf("%d acquisitions, want %d", n, processes*times)
	}
}

// hammer takes a lock again and again and never ends.
func hammer(s *Store) error {
	ctx := context.Background()
	for i := 0; ; i++ {
		r := ownerOf(request("key " + strconv.Itoa(i%3)))
		r.TTL = minTTL
		r.Label = strings.Repeat("x", i%200)
		g, err := tryUntilHeld(ctx, s, r)
		if err != nil {
			return err
		}
		fmt.Println(i%3, g.Token)
		if i%4 != 0 {
			if err := s.Release(ctx, r); err != nil && !errors.Is(err, quorum.ErrNotHeld) {
				return err
			}
		}
	}
}

// Processes are killed at any instruction, also within a write. What they
// leave is whole, ends at its TTL, and no token is given again.
func TestF082KilledProcessLeavesALeaseThatEnds(t *testing.T) {
	dir := newDir(t)
	s, err := New("host", dir)
	if err != nil {
		t.Skip(err)
	}
	defer s.Close()
	last := map[string]int64{}
	for round := range 8 {
		cmd, out := start(t, "hammer", dir)
		lines := bufio.NewScanner(out)
		for n := 0; lines.Scan(); n++ {
			key, text, _ := strings.Cut(lines.Text(), " ")
			token, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				break // the line that the kill cut off
			}
			if token <= last[key] {
				t.Fatalf("round %d: token %d of key %s after %d", round, token, key, last[key])
			}
			last[key] = token
			if n == 20+7*round {
				if err := cmd.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		_ = cmd.Wait()
		for key := range last {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			r := request("key " + key)
			g, err := tryUntilHeld(ctx, s, r)
			cancel()
			if err != nil || g.Token <= last[key] {
				t.Fatalf("round %d: key %s after the kill: token %d, %v; want one above %d", round, key, g.Token, err, last[key])
			}
			last[key] = g.Token
			release(t, s, r)
		}
	}
	if n := len(nameFiles(t, dir)); n != 3 {
		t.Errorf("%d files for 3 names", n)
	}
	if _, err := os.Stat(filepath.Join(dir, freshName)); err == nil {
		t.Log("a killed process left a half-made file; the next one replaces it")
	}
}

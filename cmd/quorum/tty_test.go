//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// terminalSession is a shell, or a command, at a pseudo terminal.
type terminalSession struct {
	t    *testing.T
	cmd  *exec.Cmd
	file *os.File
	out  *buffer
	done chan struct{}
}

func atTerminal(t *testing.T, set, name string, args ...string) *terminalSession {
	t.Helper()
	s := &terminalSession{t: t, cmd: exec.Command(name, args...), out: &buffer{}, done: make(chan struct{})}
	s.cmd.Env = append(os.Environ(), storesVariable+"="+set, "PS1=$ ", "HISTFILE=", "TERM=xterm", "q="+binary)
	var err error
	if s.file, err = pty.Start(s.cmd); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_, _ = s.file.WriteTo(s.out) // ends with the terminal
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		_ = s.file.Close()
		<-s.done
	})
	return s
}

func (s *terminalSession) typed(text string) {
	s.t.Helper()
	if _, err := s.file.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits for text on the terminal.
func (s *terminalSession) shows(text string) {
	s.t.Helper()
	for end := time.Now().Add(10 * time.Second); !strings.Contains(s.out.String(), text); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("the terminal does not show %q:\n%s", text, s.out)
		}
	}
}

// forget drops what was shown.
func (s *terminalSession) forget() {
	s.out.mu.Lock()
	defer s.out.mu.Unlock()
	s.out.text.Reset()
}

func (s *terminalSession) code() int {
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.ExitCode()
}

func TestR68CommandHasTheTerminal(t *testing.T) {
	t.Parallel()
	s := atTerminal(t, stores(t), binary, "run", "key", "--", "sh", "-c", `
		if read -r _ _ _ _ group _ _ foreground _ </proc/self/stat; then echo "foreground: $((group == foreground))"; fi
		read -r line; echo read: $line; exit 5`)
	if runtime.GOOS == "linux" {
		s.shows("foreground: 1")
	}
	s.typed("hello\n")
	s.shows("read: hello")
	if code := s.code(); code != 5 {
		t.Errorf("code %d, want 5", code)
	}
}

func TestR68CtrlCReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	set := stores(t)
	s := atTerminal(t, set, binary, "run", "key", "--", "sh", "-c",
		`trap 'echo int; n=$((n+1))' INT; echo started; while [ "$n" != 1 ]; do sleep 0.01; done; sleep 0.2; echo "n is $n"; exit $n`)
	s.shows("started")
	s.typed("\x03")
	s.shows("n is 1")
	if code := s.code(); code != 1 {
		t.Errorf("code %d, want 1", code)
	}
	free(t, set, "key")
}

func TestR68CtrlZAndFgUnderAShell(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	set := stores(t)
	s := atTerminal(t, set, "bash", "--norc", "--noprofile", "-i")
	s.shows("$ ")
	s.typed(`"$q" run --ttl 60s key -- sh -c 'echo start''ed; read -r line; echo "got $line"; exit 3'` + "\n")
	s.shows("started")
	s.typed("\x1a")
	s.shows("Stopped")
	s.forget()
	s.typed("echo shell has ter''minal\n") // the shell has its terminal back
	s.shows("shell has terminal")
	s.typed("fg\n")
	time.Sleep(50 * time.Millisecond) // typed ahead or not, the line is the command's
	s.typed("input\n")
	s.shows("got input")
	s.forget()
	s.typed("echo code $?\n")
	s.shows("code 3")
	free(t, set, "key")
}

func TestF008StoppedJobThatLostItsLockDoesNotGoOn(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	set := stores(t)
	mark := filepath.Join(t.TempDir(), "went-on")
	s := atTerminal(t, set, "bash", "--norc", "--noprofile", "-i")
	s.shows("$ ")
	s.typed(`"$q" run --ttl 1s key -- sh -c 'trap "touch ` + mark + `" TERM CONT; echo start''ed; read -r line; touch ` + mark + `'` + "\n")
	s.shows("started")
	s.typed("\x1a")
	s.shows("Stopped")
	run(t, set, "run", "--ttl", "1s", "--wait", "5s", "key", "--", "true").expect(0) // somebody else had it
	s.forget()
	s.typed("fg\n")
	s.shows("lock lost")
	s.shows("$ ")
	s.typed("echo code $?\n")
	s.shows("code 76")
	if _, err := os.Stat(mark); err == nil {
		t.Error("the command went on after its lock was lost")
	}
}

func TestCtrlZWithoutAShellDoesNotHang(t *testing.T) {
	t.Parallel()
	s := atTerminal(t, stores(t), binary, "run", "key", "--", "sh", "-c", "echo started; read -r line; exit 4")
	s.shows("started")
	s.typed("\x1a")
	time.Sleep(300 * time.Millisecond) // nobody can resume quorum: it resumes the command
	s.typed("\n")
	if code := s.code(); code != 4 {
		t.Errorf("code %d, want 4\n%s", code, s.out)
	}
}

func TestR68BackgroundJobLeavesTheTerminalAlone(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	set := stores(t)
	s := atTerminal(t, set, "bash", "--norc", "--noprofile", "-i")
	s.shows("$ ")
	s.typed(`"$q" run key -- sh -c 'echo start''ed; exec sleep 1000' &` + "\n")
	s.shows("started")
	s.forget()
	s.typed("echo the shell still re''ads\n")
	s.shows("the shell still reads")
	s.typed("kill %1; wait %1; echo code $?\n")
	s.shows("code 143")
}

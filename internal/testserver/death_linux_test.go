package testserver

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// The test binary runs itself as the test that is killed.
const victimVariable = "TESTSERVER_VICTIM"

func TestServerDiesWithAKilledTest(t *testing.T) {
	if os.Getenv(victimVariable) != "" {
		os.Stdout.WriteString(Redis(t).Addr + "\n")
		select {} // until it is killed, so that no cleanup runs
	}
	victim := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithAKilledTest$", "-test.timeout=1m")
	victim.Env = append(os.Environ(), victimVariable+"=1")
	out, err := victim.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	addr := strings.TrimSpace(line)
	_ = victim.Process.Kill()
	_ = victim.Wait()
	if err != nil {
		t.Fatalf("the victim named no server: %v", err)
	}
	for deadline := time.Now().Add(stopLimit); ; time.Sleep(pollEvery) {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return
		}
		conn.Close()
		if time.Now().After(deadline) {
			t.Fatalf("the server at %s outlived its test by %v", addr, stopLimit)
		}
	}
}

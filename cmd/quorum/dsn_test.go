//go:build unix

package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestFileDSNsAreWrittenInOneWay(t *testing.T) {
	for dsn, want := range map[string]string{
		"file:/a":               "file:///a",
		"file:///a":             "file:///a",
		"file:/a/../b/?name=x":  "file:///b?name=x",
		"sqlite:/a/../b.db":     "sqlite:///b.db",
		"redis://h/0":           "redis://h/0",
		"rediss://u:p@h?name=x": "rediss://u:p@h?name=x",
	} {
		if got, err := checkDSN(dsn); got != want || err != nil {
			t.Errorf("%s gives %q, %v, want %q", dsn, got, err, want)
		}
	}
}

func TestR63TextThatIsNoDSNIsToldWithWhatToWrite(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for text, part := range map[string]string{
		"":                           "empty",
		"foo":                        "redis://foo",
		"localhost":                  "redis://localhost",
		"localhost:6379":             "redis://localhost:6379",
		"127.0.0.1:6379":             "redis://127.0.0.1:6379",
		"/dir":                       "file:/dir",
		"file:dir":                   "absolute",
		"file:":                      "neither a host nor a path",
		"file://host/dir":            "absolute",
		"file:" + missing + "/locks": missing,
		"sqlite:locks.db":            "sqlite:/file",
		"sqlite:" + missing + "/x":   missing,
		"zookeeper://h:1":            "redis://, rediss:// (TLS), postgres://, consul://",
		"redis://u:s3cret@h:port":    `DSN "redis://xxxxx": what follows the colon behind the host is no port`,
		"u:s3cret@h:6379":            "",
		"s3cret@h":                   "no scheme",
	} {
		_, err := checkArguments([]string{"file:/fine", text})
		if codeOf(err) != codeUsage || !strings.Contains(err.Error(), part) || !strings.Contains(err.Error(), "store 2 of 2") {
			t.Errorf("%q gives %v, want a usage error with %q", text, err, part)
			continue
		}
		for _, no := range []string{"visible to every user", "github.com", "s3cret"} {
			if strings.Contains(err.Error(), no) {
				t.Errorf("%q gives %v, which says %q", text, err, no)
			}
		}
	}
}

func TestR63PasswordsInArgumentsAreRefused(t *testing.T) {
	for dsn, refused := range map[string]bool{
		"redis://h:1": false, "redis://user@h:1": false, "redis://user:s3cret@h:1": true, "redis://h:1?password=s3cret": true,
		"redis:u:s3cret@h:1": true,
	} {
		_, err := checkArguments([]string{dsn})
		if refused != (err != nil) || refused && (codeOf(err) != codeUsage || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s gives %v", dsn, err)
		}
	}
}

// One member that leads elsewhere makes another set, and the members that both
// sets have in common tell it.
func TestSetsThatDifferInOneDatabaseOrPrefixMeetAsAMismatch(t *testing.T) {
	nodes, _ := newRedisSet(t, 3)
	var dsns []string
	for _, n := range nodes {
		n.RestartEmpty()
		dsns = append(dsns, "redis://"+n.Addr)
	}
	set := strings.Join(dsns, " ")
	run(t, set, "init", "--yes").expect(0)
	run(t, set, "run", "--try", "key", "--", "true").expect(0)
	run(t, set+"/0", "run", "--try", "key", "--", "true").expect(0)
	for _, other := range []string{"/5", "?db=5", "?prefix=other"} {
		run(t, set+other, "run", "--try", "key", "--", "true").expect(codeMismatch)
	}
}

package main

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
)

// defaultDirectory is where locks lie when no store is named: a directory of
// the user's own. It is found in the user database and not through HOME or XDG
// variables, because these differ between cron, sudo and a shell, and jobs
// that lock in different directories do not exclude each other.
func defaultDirectory() (string, error) {
	uid := os.Geteuid()
	if uid == 0 {
		return "/var/lib/quorum/locks", nil
	}
	home := homeOf(uid)
	if !filepath.IsAbs(home) {
		return "", usagef("no store is named, and user %d has no home directory for one; name one with --store file:/directory", uid)
	}
	return filepath.Join(home, ".local", "state", "quorum", "locks"), nil
}

// homeOf looks the home directory up in the user database. Without HOME in
// the environment, since package os/user falls back on it when the database,
// read without cgo, does not know the user.
func homeOf(uid int) string {
	if home, ok := os.LookupEnv("HOME"); ok {
		_ = os.Unsetenv("HOME")
		defer func() { _ = os.Setenv("HOME", home) }()
	}
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return ""
	}
	return u.HomeDir
}

package main

import (
	"bufio"
	"io"
	"os"
	"slices"
	"unicode"

	"github.com/quorumlock/quorum"
)

// readStoresFile reads DSNs, one a line. A # at the beginning of a line or
// after a blank begins a comment: elsewhere it may be part of a DSN.
func readStoresFile(path string, stderr io.Writer) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, usagef("--stores-file: %v", err)
	}
	defer f.Close()
	var found []string
	lines := bufio.NewScanner(f)
	for number := 1; lines.Scan(); number++ {
		switch dsns := quorum.SplitDSNs(withoutComment(lines.Text())); len(dsns) {
		case 0:
		case 1:
			found = append(found, dsns[0])
		default:
			return nil, usagef("--stores-file %s, line %d: write one DSN a line; a comment begins with #", path, number)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, usagef("--stores-file %s: %v", path, err)
	}
	if len(found) == 0 {
		return nil, usagef("--stores-file %s names no store; write one DSN a line", path)
	}
	checked, err := checkDSNs("--stores-file "+path, found)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil && slices.ContainsFunc(checked, hasPassword) && info.Mode().Perm()&0o004 != 0 {
		say(stderr, "warning: every user can read the password in %s; run chmod 600 %s", path, path)
	}
	return checked, nil
}

func withoutComment(line string) string {
	for i, r := range line {
		if r == '#' && (i == 0 || unicode.IsSpace(rune(line[i-1]))) {
			return line[:i]
		}
	}
	return line
}

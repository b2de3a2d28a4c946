package sqlitestore

import (
	"fmt"
	"strings"
)

// What SQLite says is the same text in every driver; their error types differ.
const (
	lockedFile  = "database is locked"
	lockedTable = "database table is locked"
)

// remedies are the errors whose cause has a remedy.
var remedies = []struct{ says, do string }{
	{lockedFile, "another transaction had the database for the whole limit of the call; find the program that keeps one open, " +
		"or give the locks a file of their own"},
	{lockedTable, "another connection of this process keeps a transaction open; end it, or do without shared cache"},
	{"readonly database", "this user may not write the file, or its folder, where SQLite puts its journal"},
	{"disk is full", "the disk is full; make room: locks that are held end at their TTL"},
	{"unable to open database file", "its folder is not there, or this user may not enter it or write in it"},
	{"disk image is malformed", "the file is damaged; restore it or remove it, and tell the set by quorum init --forgotten"},
	{"file is not a database", "the file is none of SQLite's, or damaged; name another"},
	{"no such table: main.quorum_", "somebody dropped the store's tables; open the store again: it then counts as one that forgot"},
}

func explain(err error) error {
	for _, r := range remedies {
		if strings.Contains(err.Error(), r.says) {
			return fmt.Errorf("%s: %w", r.do, err)
		}
	}
	return err
}

// isBusy reports whether a statement failed for a lock of another connection,
// and may be made again.
func isBusy(err error) bool {
	return strings.Contains(err.Error(), lockedFile) || strings.Contains(err.Error(), lockedTable)
}

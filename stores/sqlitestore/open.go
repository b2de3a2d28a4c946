package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/quorumlock/quorum"
)

// Open opens the database in the file path, or makes it with mode 0600, in the
// journal mode WAL: the folder must be there. Journal mode and file mode of one
// that exists are left as they are. Close the Store when done. For the rest see
// [New].
func Open(ctx context.Context, name, path string, opts ...Option) (*Store, error) {
	m, err := thisMachine()
	if err != nil {
		return nil, fmt.Errorf("sqlite store %s: %w", name, err)
	}
	return openPath(ctx, m, name, path, opts...)
}

func openPath(ctx context.Context, m *machine, name, path string, opts ...Option) (*Store, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: a SQLite store needs the path of a file", quorum.ErrInvalidOption)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	wal, err := prepare(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("sqlite store %s in %s: %w", name, path, explain(err))
	}
	// In WAL mode NORMAL loses at most the last commits in a power cut, and that
	// is dealt with in record.go. In other modes it may lose the whole file.
	level := full
	if wal {
		level = normal
	}
	db, err := sql.Open("sqlite", dataSource(path, level))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(connections)
	db.SetMaxIdleConns(connections)
	s, err := newStore(ctx, m, name, db, opts...)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s.file.owned = true
	return s, nil
}

// connections are enough for the one that writes and for watches, of which
// there may be a thousand.
const connections = 4

func dataSource(path string, level int) string {
	u := url.URL{Scheme: "file", Path: path, RawQuery: fmt.Sprintf("_pragma=busy_timeout(0)&_pragma=synchronous(%d)", level)}
	return u.String()
}

// prepare makes the file if there is none, gives an empty one the journal mode
// WAL, and reports whether it is in that mode.
func prepare(ctx context.Context, path string) (wal bool, err error) {
	// SQLite would give it the umask's mode, and it holds owners' IDs. Only a new
	// file may be closed here: that of an old one would drop this process's locks.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		err = f.Close()
	case errors.Is(err, fs.ErrExist):
		err = nil
	}
	if err != nil {
		return false, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return false, err
	}
	db, err := sql.Open("sqlite", dataSource(path, full))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	query := "PRAGMA main.journal_mode"
	if info.Size() == 0 {
		query += " = WAL"
	}
	var mode string
	err = await(ctx, func() error { return db.QueryRowContext(ctx, query).Scan(&mode) })
	return mode == "wal", err
}

// Opener takes DSNs of the form sqlite:///path/of/the/file.db, see
// [quorum.Open]. It takes no parameter but name.
func Opener() quorum.Opener {
	return quorum.Opener{Schemes: []string{"sqlite"}, Open: openDSN}
}

func openDSN(ctx context.Context, dsn *url.URL) (quorum.Store, error) {
	query := dsn.Query()
	name := query.Get("name")
	query.Del("name")
	path := dsn.Path
	if dsn.Opaque != "" {
		relative, err := url.PathUnescape(dsn.Opaque)
		if err != nil {
			return nil, fmt.Errorf("%w: the path of the DSN: %w", quorum.ErrInvalidOption, err)
		}
		path = relative
	}
	switch {
	case len(query) > 0:
		return nil, fmt.Errorf("%w: a SQLite DSN takes no parameter but name", quorum.ErrInvalidOption)
	case dsn.Host != "" && dsn.Host != "localhost":
		return nil, fmt.Errorf("%w: the file of a SQLite DSN is on this machine, not on %s; "+
			"write sqlite:/path with one slash or three", quorum.ErrInvalidOption, dsn.Host)
	case dsn.User != nil || dsn.Fragment != "":
		return nil, errors.Join(quorum.ErrInvalidOption, errors.New("a SQLite DSN has neither a user nor a fragment"))
	}
	store, err := Open(ctx, name, path)
	if err != nil {
		return nil, err
	}
	return store, nil
}

//go:build linux

package sqlitestore

import (
	"errors"
	"testing"

	"github.com/quorumlock/quorum/fence"
	"github.com/quorumlock/quorum/fence/fencetest"
)

func TestR30FenceInSQLite(t *testing.T) {
	for _, journal := range journals {
		t.Run(journal, func(t *testing.T) {
			db := database(t, newPath(t), journal)
			guard, err := fence.NewSQL(db, fence.SQLite, "fence")
			if err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second changes nothing
				if err := guard.Setup(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			fencetest.Run(t, func(*testing.T, string) fence.Guard { return guard })

			// Admission and write are one transaction: a write that fails takes the
			// admission back, and a stale one writes nothing.
			run(t, db, "CREATE TABLE report (body TEXT)")
			write := func(token int64, query string) error {
				tx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = tx.Rollback() }()
				if err := guard.In(tx).Admit(t.Context(), "report", token); err != nil {
					return err
				}
				if _, err := tx.ExecContext(t.Context(), query); err != nil {
					return err
				}
				return tx.Commit()
			}
			if err := write(9, "INSERT INTO nowhere VALUES (1)"); err == nil {
				t.Fatal("a write into no table succeeded")
			}
			for _, row := range []struct {
				token int64
				want  error
			}{{8, nil}, {8, nil}, {7, fence.ErrStale}} {
				if err := write(row.token, "INSERT INTO report VALUES ('x')"); !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
					t.Errorf("token %d: %v, want %v", row.token, err, row.want)
				}
			}
			if n := one[int](t, db, "SELECT count(*) FROM report"); n != 2 {
				t.Errorf("%d rows were written, want 2", n)
			}
		})
	}
}

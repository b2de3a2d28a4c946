//go:build linux

package pgstore_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/stores/pgstore"
)

func TestR62OpenerMakesAndClosesItsPool(t *testing.T) {
	schema := newSchema()
	dsn := shared(t).URL() + "&name=a&schema=" + schema
	set, err := quorum.Open(t.Context(), []string{dsn}, pgstore.Opener())
	if err != nil {
		t.Fatal(err)
	}
	locks, err := quorum.New(set)
	if err != nil {
		t.Fatal(err)
	}
	if err := locks.Init(t.Context()); err != nil { // makes the tables
		t.Fatal(err)
	}
	lease, err := locks.TryAcquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := locks.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := one[int](t, pool(t, shared(t).URL()), fmt.Sprintf("select count(*) from %s.lock", schema)); n != 1 {
		t.Errorf("%d rows in the schema of the DSN", n)
	}
}

func TestR63OpenerRefusesAndHidesPasswords(t *testing.T) {
	o := pgstore.Opener()
	for _, dsn := range []string{
		"postgres://u:s3cret@h:port/db", "postgres://u:s3cret@h", "postgres://u:s3cret@h/db?schema=A", "postgres://u:s3cret@h/db?sslmode=maybe",
		"postgres://u:s3cret@h/db?listen=%zz",
	} {
		u, err := url.Parse(dsn)
		if err != nil {
			continue // never gets to an opener
		}
		s, err := o.Open(t.Context(), u)
		if err == nil {
			t.Errorf("%s was opened: %v", dsn, s)
			continue
		}
		if !errors.Is(err, quorum.ErrInvalidOption) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	for dsn, want := range map[string]string{
		"postgres://u:p@h:5432/db?schema=quorum": "postgres://h:5432/db",
		"postgresql://u@h/db?schema=other":       "postgres://h/db?schema=other",
	} {
		u, err := url.Parse(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if got := o.Name(u); got != want {
			t.Errorf("%s is named %s, want %s", dsn, got, want)
		}
	}
}

func TestR81WrongPasswordIsNoContention(t *testing.T) {
	p := pool(t, shared(t).URL())
	run(t, p, "create role stranger login password 'right-horse'")
	// The server trusts all that come from here, so a role that may not log in
	// stands for one with a wrong password.
	run(t, p, "alter role stranger nologin")
	q := pool(t, strings.Replace(shared(t).URL(), "postgres@", "stranger:wrong-battery@", 1))
	s, err := pgstore.New("a", q)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Acquire(t.Context(), ask("k", owner()))
	wantOutcome(t, err, quorum.OutcomeUndelivered)
	if errors.Is(err, quorum.ErrHeld) || !strings.Contains(err.Error(), "refuses the user") || strings.Contains(fmt.Sprintf("%v %+v", err, err), "battery") {
		t.Errorf("%v", err)
	}
}

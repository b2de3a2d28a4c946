package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum"
)

func newStatus() *cobra.Command {
	s := set{next: &newSet{}}
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "status [flags] KEY",
		Short: "Show who holds a lock, store by store",
		Long: `Show who holds the lock KEY, store by store: the holder's label, its fencing token, and when its vote ends.
Slots of a KEY (quorum run --slots) are locks of their own, and leave KEY free: ask for KEY#1, KEY#2 and on.

Exit codes: 0 free, 75 held, 69 unknown because too few stores answered, 78 unknown because stores serve another set,
64 usage, 70 anything else.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("give one key: quorum status KEY")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return showStatus(cmd.Context(), &s, args[0], asJSON, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	s.flags(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func showStatus(ctx context.Context, s *set, key string, asJSON bool, stdout, stderr io.Writer) (err error) {
	locker, err := s.lock(ctx, stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, locker.Close(context.WithoutCancel(ctx))) }()
	status, err := locker.Inspect(ctx, key)
	if err != nil {
		return err
	}
	if asJSON {
		err = printJSON(stdout, status)
	} else {
		err = printTable(stdout, status)
	}
	if err != nil {
		return err
	}
	switch status.Verdict {
	case quorum.VerdictFree:
		return nil
	case quorum.VerdictHeld:
		return &exitError{codeContention, nil}
	}
	quarantined := false
	for _, s := range status.Stores {
		if errors.Is(s.Err, quorum.ErrMismatch) {
			return &exitError{codeMismatch, nil}
		}
		quarantined = quarantined || s.Err == nil && s.State.Quarantine
	}
	if quarantined {
		say(stderr, "%s", quarantineHint)
	}
	return &exitError{codeOutage, nil}
}

// statusJSON is what --json prints. Fields may be added, and none is taken
// away or changes its meaning.
type statusJSON struct {
	Key     string      `json:"key"`
	Verdict string      `json:"verdict"` // free, held, unknown
	Stores  []storeJSON `json:"stores"`
}

type storeJSON struct {
	Name       string       `json:"name"`
	Answered   bool         `json:"answered"`
	Error      string       `json:"error,omitempty"`
	Quarantine bool         `json:"quarantine"`
	Counter    int64        `json:"counter"`
	Holders    []holderJSON `json:"holders"`
}

type holderJSON struct {
	Owner  string    `json:"owner"` // tells holders apart; not the owner's secret
	Label  string    `json:"label"`
	Mode   string    `json:"mode"`
	Token  int64     `json:"token"`
	Since  time.Time `json:"since"`   // on the store's clock
	LeftMS int64     `json:"left_ms"` // until the vote ends unless it is renewed
}

func printJSON(w io.Writer, status *quorum.Status) error {
	out := statusJSON{Key: status.Key, Verdict: status.Verdict.String(), Stores: []storeJSON{}}
	for _, s := range status.Stores {
		store := storeJSON{
			Name: s.Name, Answered: s.Err == nil, Quarantine: s.State.Quarantine,
			Counter: s.State.Counter, Holders: []holderJSON{},
		}
		if s.Err != nil {
			store.Error = s.Err.Error()
		}
		for _, h := range s.State.Holders {
			store.Holders = append(store.Holders, holderJSON{
				Owner: h.Owner, Label: h.Label, Mode: h.Mode.String(), Token: h.Token,
				Since: h.Since.UTC(), LeftMS: h.Left.Milliseconds(),
			})
		}
		out.Stores = append(out.Stores, store)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(out)
}

func printTable(w io.Writer, status *quorum.Status) error {
	fmt.Fprintf(w, "%s: %s\n", status.Key, status.Verdict)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "STORE\tHOLDER\tTOKEN\tLEFT")
	for _, s := range status.Stores {
		switch {
		case errors.Is(s.Err, quorum.ErrMismatch):
			fmt.Fprintf(table, "%s\tserves another set\t\t\n", s.Name)
		case s.Err != nil:
			fmt.Fprintf(table, "%s\tno answer\t\t\n", s.Name)
		case s.State.Quarantine && len(s.State.Holders) == 0:
			fmt.Fprintf(table, "%s\tin quarantine: may have forgotten, and does not vote yet\t\t\n", s.Name)
		case len(s.State.Holders) == 0:
			fmt.Fprintf(table, "%s\tfree\t\t\n", s.Name)
		}
		for _, h := range s.State.Holders {
			who := h.Label
			if who == "" {
				who = "owner " + h.Owner
			}
			if h.Mode == quorum.ModeShared {
				who += " (shared)"
			}
			fmt.Fprintf(table, "%s\t%s\t%d\t%v\n", s.Name, printable(who), h.Token, h.Left.Round(100*time.Millisecond))
		}
	}
	err := table.Flush()
	printErrors(w, status)
	return err
}

// printErrors gives errors lines of their own: they would stretch the columns.
func printErrors(w io.Writer, status *quorum.Status) {
	for _, s := range status.Stores {
		if s.Err != nil {
			fmt.Fprintf(w, "%s: %s\n", s.Name, cause(s.Err))
		}
	}
}

// printable keeps control characters of somebody else's label off a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/quorumlock/quorum/cmd/quorum/internal/scenario"
	"github.com/quorumlock/quorum/internal/simpage"
)

// explaining is one call of quorum sim explain.
type explaining struct {
	file   string
	out    string
	source bool
}

func newSimExplain() *cobra.Command {
	x := &explaining{}
	cmd := &cobra.Command{
		Use:   "explain [flags] [NAME]",
		Short: "Play a failure mode and draw what happens as a web page",
		Long: `Play the failure mode NAME in a simulated world and draw it: a web page of one file, with a lane for each client and
store, messages as arrows, and who believes what when. Without NAME, list the failure modes. With --file, draw a world of
your own.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || len(args) == 1 && x.file != "" {
				return usagef("give one failure mode, or --file; see quorum sim explain --help")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && x.file == "" {
				return listModes(cmd.OutOrStdout())
			}
			return x.run(args, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&x.out, "output", "o", "", "write the page to this file, - for the standard output (default: NAME.html)")
	f.StringVar(&x.file, "file", "", "draw the world that this file describes")
	f.BoolVar(&x.source, "source", false, "print the mode's own description, to begin one of yours with")
	return cmd
}

func listModes(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, name := range scenario.Modes() {
		fmt.Fprintf(t, "%s\t%s\n", name, scenario.Title(name))
	}
	return t.Flush()
}

func (x *explaining) run(args []string, stdout io.Writer) error {
	name, text := "--file "+x.file, []byte(nil)
	if x.file != "" {
		var err error
		if text, err = os.ReadFile(x.file); err != nil {
			return usagef("%v", err)
		}
	} else if name, text = args[0], scenario.Source(args[0]); text == nil {
		return usagef("there is no failure mode %q: one of %s", name, strings.Join(scenario.Modes(), ", "))
	}
	if x.source {
		_, err := stdout.Write(text)
		return err
	}
	m, err := x.play(name, text)
	if err != nil {
		return usagef("%s: %v", name, err)
	}
	var page bytes.Buffer
	show := simpage.Show{Name: name, Title: m.Title, Text: m.Text, Trace: m.Report.Trace, Violations: m.Report.Violations}
	if err := simpage.Page(&page, show); err != nil {
		return err
	}
	return x.write(args, page.Bytes(), stdout)
}

// play plays the failure mode, or the world of the file, whose text is given.
func (x *explaining) play(name string, text []byte) (*scenario.Mode, error) {
	if x.file == "" {
		return scenario.Play(name)
	}
	f, err := scenario.Parse(text)
	if err != nil {
		return nil, err
	}
	m := &scenario.Mode{Title: f.Title, Text: f.Text, Report: f.Show()}
	if m.Title == "" {
		m.Title = x.file
	}
	return m, nil
}

func (x *explaining) write(args []string, page []byte, stdout io.Writer) error {
	out := x.out
	if out == "" && len(args) == 1 {
		out = args[0] + ".html"
	} else if out == "" {
		out = "scenario.html"
	}
	if out == "-" {
		_, err := stdout.Write(page)
		return err
	}
	if err := os.WriteFile(out, page, 0o644); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "wrote %s: open it in a browser\n", out)
	return err
}

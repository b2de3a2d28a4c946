//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/quorumlock/quorum"
)

func TestR71F161StatusNamesHolderTokenTimeAndDeadStores(t *testing.T) {
	nodes, set := newRedisSet(t, 3)
	holder := hold(t, set, "key", "--label", "the night job")
	nodes[1].Stop()
	r := run(t, set, "status", "key").expect(75)
	for _, part := range []string{"key: held", "the night job", " pid ", "no answer"} {
		if !strings.Contains(r.stdout.String(), part) {
			t.Errorf("status does not show %q:\n%s", part, r.stdout)
		}
	}
	got := valid(t, run(t, set, "status", "--json", "key").expect(75).stdout.String())
	if got.Key != "key" || got.Verdict != "held" || len(got.Stores) != 3 {
		t.Errorf("got %+v", got)
	}
	holders := 0
	for _, s := range got.Stores {
		if s.Answered != (s.Name != "b") {
			t.Errorf("store %s: answered %v", s.Name, s.Answered)
		}
		for _, h := range s.Holders {
			holders++
			if !strings.Contains(h.Label, "the night job") || h.Token <= 0 || h.LeftMS <= 0 || h.LeftMS > 15_000 {
				t.Errorf("store %s: holder %+v", s.Name, h)
			}
		}
	}
	if holders != 2 {
		t.Errorf("%d stores name a holder, want the 2 that live", holders)
	}
	_ = holder.Process.Kill()
	holder.wait()
}

func TestR71StatusExitCodes(t *testing.T) {
	set := stores(t)
	if got := valid(t, run(t, set, "status", "--json", "key").expect(0).stdout.String()); got.Verdict != "free" {
		t.Errorf("verdict %s, want free", got.Verdict)
	}
	hold(t, set, "key")
	run(t, set, "status", "key").expect(75)
	if got := valid(t, run(t, "redis://127.0.0.1:1", "status", "--json", "key").expect(69).stdout.String()); got.Verdict != "unknown" {
		t.Errorf("verdict %s, want unknown", got.Verdict)
	}
	run(t, set, "status").expect(64)
	run(t, set, "status", "a", "b").expect(64)
	run(t, set, "status", strings.Repeat("k", 513)).expect(64)
}

func TestR71JSONKeepsToItsSchema(t *testing.T) {
	holder := quorum.Holder{Owner: "0123456789ab", Label: "a <b> & c", Token: 7, Since: time.Now(), Left: time.Second}
	reader := holder
	reader.Mode = quorum.ModeShared
	for _, status := range []quorum.Status{
		{Key: "k", Verdict: quorum.VerdictFree, Stores: []quorum.StoreStatus{{Name: "a"}}},
		{Key: "k", Verdict: quorum.VerdictUnknown, Stores: []quorum.StoreStatus{
			{Name: "a", Err: errors.New("no route to host")}, {Name: "b", State: quorum.State{Quarantine: true}},
		}},
		{Key: "k", Verdict: quorum.VerdictHeld, Stores: []quorum.StoreStatus{
			{Name: "a", State: quorum.State{Counter: 7, Holders: []quorum.Holder{holder}}},
			{Name: "b", State: quorum.State{Counter: 7, Holders: []quorum.Holder{reader, reader}}},
		}},
	} {
		var out bytes.Buffer
		if err := printJSON(&out, &status); err != nil {
			t.Fatal(err)
		}
		if got := valid(t, out.String()); got.Verdict != status.Verdict.String() {
			t.Errorf("verdict %s, want %s", got.Verdict, status.Verdict)
		}
	}
}

// valid checks a text against the schema and reads it.
func valid(t *testing.T, text string) statusJSON {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	schema, err := compiler.Compile("testdata/status.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%v\n%s", err, text)
	}
	var got statusJSON
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestStatusShowsNoControlCharactersOfALabel(t *testing.T) {
	var out bytes.Buffer
	status := quorum.Status{Key: "k", Verdict: quorum.VerdictHeld, Stores: []quorum.StoreStatus{
		{Name: "a", State: quorum.State{Holders: []quorum.Holder{{Label: "x\x1b[2Jy\n", Token: 1}}}},
	}}
	if err := printTable(&out, &status); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "x?[2Jy?") {
		t.Errorf("got %q", out.String())
	}
}

func TestInitNeedsAYesAndEndsTheWaitOfANewSet(t *testing.T) {
	nodes, set := newRedisSet(t, 1)
	nodes[0].RestartEmpty() // as new as it gets
	run(t, set, "run", "--try", "key", "--", "true").expect(69)
	if r := run(t, set, "init").expect(64); !strings.Contains(r.stderr.String(), "--yes") {
		t.Errorf("without a terminal --yes is not named:\n%s", r.stderr)
	}
	run(t, set, "run", "--try", "key", "--", "true").expect(69)
	run(t, set, "init", "--yes").expect(0)
	run(t, set, "run", "--try", "key", "--", "true").expect(0)
	run(t, set, "init", "--yes", "key").expect(64)
}

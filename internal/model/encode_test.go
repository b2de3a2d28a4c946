package model_test

import (
	"encoding/hex"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

func sampleRecord() model.Record {
	return model.Record{
		Standing: model.Quarantined, Lost: true, Serving: 2, Serves: [2]uint64{set, 0xbad}, Member: "a", Run: "run1",
		End: epoch, Base: 3 << core.StepBits, Step: 4, Moved: -5,
	}
}

func sampleName() model.Name {
	return model.Name{
		Votes: []model.Vote{
			{Owner: core.Owner{ID: core.ID{1}, Attempt: 7}, Mode: core.Shared, Token: 9, Since: 10, Until: 11, Label: "ä"},
			{Owner: core.Owner{ID: core.ID{2}, Attempt: 1<<32 - 1}, Mode: core.Shared, Token: core.TokenLimit - 1, Until: -1},
		},
		Tombs:  []model.Tomb{{ID: core.ID{3}, Attempt: 2, Until: 12}},
		Forced: []model.Forced{{ID: core.ID{4}, Label: "by me", Until: 13}},
		Known:  true, Writer: true, Counter: core.TokenLimit - 1, Keep: 14, Last: core.PreviousExpired,
	}
}

// What is kept on a disk must be read by the next version: a change of these
// needs another Format, and a decoder that still reads this one.
func TestR87Encoding(t *testing.T) {
	r, n := sampleRecord(), sampleName()
	for _, tc := range []struct {
		what      string
		got, want string
	}{
		{"record", hex.EncodeToString(must(r.AppendBinary(nil))), "01030102000000000000feed0000000000000bad" +
			"01610472756e31" + "8080c489e5c5b206" + "808080c001" + "08" + "09"},
		{"name", hex.EncodeToString(must(n.AppendBinary(nil))), "010302feffffffffffff1f1c02" +
			"010000000000000000000000000000000701121416" + "02c3a4" +
			"02000000000000000000000000000000ffffffff0f01feffffffffffff1f000100" +
			"01030000000000000000000000000000000218" +
			"010400000000000000000000000000000005" + "6279206d65" + "1a"},
	} {
		if tc.got != tc.want {
			t.Errorf("a %s encodes as\n%s, want\n%s", tc.what, tc.got, tc.want)
		}
	}
}

func TestDecodingGivesBackWhatWasEncoded(t *testing.T) {
	r, n := sampleRecord(), sampleName()
	var gotRecord model.Record
	if err := gotRecord.UnmarshalBinary(must(r.AppendBinary(nil))); err != nil || gotRecord != r {
		t.Errorf("record: %+v, %v; want %+v", gotRecord, err, r)
	}
	var gotName model.Name
	if err := gotName.UnmarshalBinary(must(n.AppendBinary(nil))); err != nil || !reflect.DeepEqual(gotName, n) {
		t.Errorf("name: %+v, %v; want %+v", gotName, err, n)
	}
}

func TestDecodingRefusesWhatWasNotEncoded(t *testing.T) {
	r, n := sampleRecord(), sampleName()
	record, name := must(r.AppendBinary(nil)), must(n.AppendBinary(nil))
	refused := func(what string, b []byte, into interface{ UnmarshalBinary([]byte) error }) {
		t.Helper()
		if err := into.UnmarshalBinary(b); !errors.Is(err, model.ErrCorrupt) {
			t.Errorf("%s decodes: %v, want ErrCorrupt", what, err)
		}
	}
	for cut := range record {
		refused("a cut record", record[:cut], &model.Record{})
	}
	for cut := range name {
		refused("a cut name", name[:cut], &model.Name{})
	}
	refused("a record and more", append(record, 0), &model.Record{})
	refused("a name and more", append(name, 0), &model.Name{})
	name[0] = model.Format + 1
	refused("a name of another format", name, &model.Name{})
	n.Votes[0], n.Votes[1] = n.Votes[1], n.Votes[0]
	refused("votes out of order", must(n.AppendBinary(nil)), &model.Name{})
}

func TestDecodingNeverPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := sampleName()
		b := must(n.AppendBinary(nil))
		for range rapid.IntRange(1, 3).Draw(t, "changes") {
			b[rapid.IntRange(1, len(b)-1).Draw(t, "at")] = rapid.Byte().Draw(t, "to")
		}
		_ = (&model.Name{}).UnmarshalBinary(b)
		_ = (&model.Record{}).UnmarshalBinary(b)
	})
}

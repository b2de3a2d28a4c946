package model_test

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/quorumlock/quorum/internal/core"
	"github.com/quorumlock/quorum/internal/model"
)

// A simulator tells states apart by their encoding, so no field may be missing
// from it.
func TestEncodingShowsEveryField(t *testing.T) {
	record := model.Record{
		Standing: model.Voting, Serving: 2, Serves: [2]uint64{set, 0xbad}, Member: "a", Run: "run1",
		End: epoch, Base: 3, Step: 4, Moved: 5,
	}
	changeEach(t, reflect.ValueOf(&record).Elem(), "Record", func() []byte { return must(record.AppendBinary(nil)) })
	name := model.Name{
		Votes:  []model.Vote{{Owner: core.Owner{ID: core.ID{1}, Attempt: 7}, Token: 9, Since: 10, Until: 11, Label: "l"}},
		Tombs:  []model.Tomb{{ID: core.ID{3}, Attempt: 2, Until: 12}},
		Forced: []model.Forced{{ID: core.ID{4}, Label: "m", Until: 13}},
		Queue:  []model.Entry{{Owner: core.Owner{ID: core.ID{5}, Attempt: 3}, Ticket: 14, Until: 15, Claim: 16}},
	}
	changeEach(t, reflect.ValueOf(&name).Elem(), "Name", func() []byte { return must(name.AppendBinary(nil)) })
}

// changeEach changes one leaf of v after the other and demands that the
// encoding changes with it, and comes back with it.
func changeEach(t *testing.T, v reflect.Value, path string, encode func() []byte) {
	t.Helper()
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			changeEach(t, v.Field(i), path+"."+v.Type().Field(i).Name, encode)
		}
		return
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			changeEach(t, v.Index(i), path+"[]", encode)
		}
		return
	}
	before, old := encode(), reflect.New(v.Type()).Elem()
	old.Set(v)
	switch {
	case v.Kind() == reflect.Bool:
		v.SetBool(!v.Bool())
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.CanUint():
		v.SetUint(v.Uint() ^ 1)
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	default:
		t.Fatalf("%s is a %s, which this test cannot change", path, v.Kind())
	}
	if bytes.Equal(before, encode()) {
		t.Errorf("%s is not part of the encoding", path)
	}
	v.Set(old)
	if !bytes.Equal(before, encode()) {
		t.Errorf("%s does not come back", path)
	}
}

package quorum_test

import (
	"slices"
	"testing"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/storetest"
)

func TestUsedNamesStoresThatAreNotNew(t *testing.T) {
	for _, c := range []struct {
		what   string
		change func(b *bed)
		want   []string
	}{
		{"all vote", func(*bed) {}, nil},
		{"all forgot everything", func(b *bed) { b.restart(false, 0, 1, 2) }, nil},
		{"two forgot everything, and one votes", func(b *bed) { b.restart(false, 0, 1) }, []string{"c"}},
		{"all restarted with their records", func(b *bed) { b.restart(true, 0, 1, 2) }, []string{"a", "b", "c"}},
		{"one with its record, two without", func(b *bed) { b.restart(true, 1); b.restart(false, 0, 2) }, []string{"b"}},
		{"two forgot everything, and one serves another set", func(b *bed) {
			b.restart(false, 0, 1)
			b.spoil[2].Set(storetest.Always(storetest.Fail(mismatch)))
		}, []string{"c"}},
		{"who votes does not answer", func(b *bed) { b.restart(false, 0, 1); b.down(2) }, nil},
	} {
		t.Run(c.what, func(t *testing.T) {
			inForgetfulBubble(t, 3, func(t *testing.T, b *bed) {
				l := b.locker(quorum.NoRenew())
				if used, err := l.Used(t.Context()); len(used) != 0 || err != nil {
					t.Errorf("of new stores %v are said to be used, %v", used, err)
				}
				if err := l.Init(t.Context()); err != nil {
					t.Fatal(err)
				}
				must(t, l, "k")
				b.settle()
				c.change(b)
				if used, err := l.Used(t.Context()); !slices.Equal(used, c.want) || err != nil {
					t.Errorf("%v, %v, want %v", used, err, c.want)
				}
			})
		})
	}
}

// restart has servers begin another life, with what they had or without.
func (b *bed) restart(keep bool, stores ...int) {
	for _, i := range stores {
		b.memory[i].Restart(keep)
	}
}

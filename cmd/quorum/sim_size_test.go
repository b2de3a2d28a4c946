package main

import (
	"regexp"
	"strings"
	"testing"
)

// What a number of stores and a TTL are good for shows: a lone store that is
// down takes the lock with it, a minority of three does not, and who comes after
// a dead holder waits for about the TTL.
func TestSimSizeTellsSetsApart(t *testing.T) {
	t.Parallel()
	s := &sizing{load: "typical", seeds: 3, first: 1}
	lone := s.measure(choice{1, 15e9, "in-order", "majority"})
	three := s.measure(choice{3, 15e9, "in-order", "majority"})
	short := s.measure(choice{3, 5e9, "in-order", "majority"})
	got := func(m measured) float64 { return float64(m.alone.Acquired) / float64(m.alone.Asked) }
	losses := func(m measured) int { return m.alone.Lost[1] }
	switch {
	case lone.alone.Asked < 100 || three.alone.Asked < 100:
		t.Fatalf("only %d and %d asked", lone.alone.Asked, three.alone.Asked)
	case got(three) < 0.99 || got(lone) >= got(three):
		t.Errorf("got in: %v of one store, %v of three", got(lone), got(three))
	case losses(short) <= losses(three):
		t.Errorf("lost: %d with a TTL of 5 s, %d with 15 s", losses(short), losses(three))
	}
	for _, m := range []struct {
		measured
		ttl float64
	}{{three, 15}, {short, 5}} {
		if half := m.takeOver.Quantile(0.5).Seconds(); m.takeOver.N < 20 || half < m.ttl*0.5 || half > m.ttl*1.2 {
			t.Errorf("TTL %v s: half of %d took over within %v s", m.ttl, m.takeOver.N, half)
		}
	}
}

func TestSimSizeTable(t *testing.T) {
	t.Parallel()
	args := strings.Fields("sim size --stores 3 --ttl 5s,15s --order in-order,all-at-once --strategy majority,unanimous --load calm --seeds 1")
	code, out, errs := call(t, args...)
	if code != 0 || errs != "" {
		t.Fatalf("code %d\n%s", code, errs)
	}
	rows := regexp.MustCompile(`(?m)^ +3 +(5|15)s +(in-order|all-at-once) +(majority|unanimous) +100 % +\S+s, \S+s +0.00 +0 % +\S+s, \S+s +\d+\.\d$`)
	if n := len(rows.FindAllString(out, -1)); n != 8 {
		t.Errorf("%d rows instead of 8 in\n%s", n, out)
	}
	if _, again, _ := call(t, args...); again != out {
		t.Errorf("run again, it says\n%s\nand before\n%s", again, out)
	}
}

func TestSimSizeUsage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ args, says string }{
		{"--stores 0", "--stores 0: a set has 1 to 16"},
		{"--ttl 1ms", "--ttl 1ms: 100ms to 10m"},
		{"--order any", `--order: "any" is none of`},
		{"--strategy any", `--strategy: "any" is neither`},
		{"--load heavy", `--load: "heavy" is none of calm, typical, hostile`},
		{"--seeds 0", "--seeds 0: at least 1"},
		{"now", "size takes flags only"},
	} {
		if code, _, errs := call(t, append([]string{"sim", "size"}, strings.Fields(tc.args)...)...); code != codeUsage || !strings.Contains(errs, tc.says) {
			t.Errorf("sim size %s: code %d, %q; want %q", tc.args, code, errs, tc.says)
		}
	}
}

package quorum_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/quorum"
	"github.com/quorumlock/quorum/clock"
	"github.com/quorumlock/quorum/stores/memstore"
	"github.com/quorumlock/quorum/storetest"
)

// defaultTable is the one table of defaults; the documents show the same.
// RenewEvery and CallLimit of 0 depend on TTL, see the test below.
const defaultTable = `TTL 15s
MaxTTL 1m0s
RenewEvery 0s
NoRenew false
Wait -1ns
FailOnOutage false
AskOrder first then rest
Backoff 10ms 1s
CallLimit 0s
ReleaseLimit 5s
InFlight 256
Drift 0.01 2ms
Expiring 0s
MaxHold 0s
Mode exclusive
Label ""
Observe false
WithClock *clock.system
Cluster false
`

func TestTableOfDefaults(t *testing.T) {
	if got := quorum.Defaults(); got != defaultTable {
		t.Errorf("the defaults are\n%s\nwant\n%s", got, defaultTable)
	}
}

func TestDefaultsReachTheStores(t *testing.T) {
	for ttl, limit := range map[time.Duration]time.Duration{15 * time.Second: time.Second, 3 * time.Second: 500 * time.Millisecond} {
		inBubble(t, 5, func(t *testing.T, b *bed) {
			lease := must(t, b.locker(quorum.TTL(ttl)), "k")
			within(t, "what is left", lease.Remaining(), ttl-ttl/100-2*time.Millisecond, ttl-ttl/100-2*time.Millisecond)
			r := b.spoil[b.ask("k")[0]].Log(nil)[0].Request
			if r.TTL != ttl || r.MaxTTL != time.Minute || r.Limit != limit || r.Mode != quorum.ModeExclusive {
				t.Errorf("the first store was asked for %v of %v within %v, %v", r.TTL, r.MaxTTL, r.Limit, r.Mode)
			}
			time.Sleep(ttl/3 - time.Millisecond)
			before := len(b.seen(quorum.EventRenewed))
			time.Sleep(2 * time.Millisecond)
			if after := len(b.seen(quorum.EventRenewed)); before != 0 || after != 1 {
				t.Errorf("%d and %d renewals just before and after a third of %v, want 0 and 1", before, after, ttl)
			}
		})
	}
}

func TestR65SettingsThatMakeNoSenseAreRefused(t *testing.T) {
	const second = time.Second
	type options = []quorum.Option
	for _, tc := range []struct {
		name    string
		options options
		want    error
		texts   string // words of the error, separated by |
	}{
		{"F104 TTL 0", options{quorum.TTL(0)}, quorum.ErrInvalidTTL, "0s"},
		{"F104 TTL below 0", options{quorum.TTL(-second)}, quorum.ErrInvalidTTL, "-1s"},
		{"F104 smallest TTL", options{quorum.TTL(math.MinInt64)}, quorum.ErrInvalidTTL, "-2562047h"},
		{"F104 largest TTL", options{quorum.TTL(math.MaxInt64)}, quorum.ErrInvalidTTL, "MaxTTL|1m0s"},
		{"F104 largest of both", options{quorum.TTL(math.MaxInt64), quorum.MaxTTL(math.MaxInt64)}, quorum.ErrInvalidTTL, "24h"},
		{"TTL above MaxTTL", options{quorum.TTL(61 * second)}, quorum.ErrInvalidTTL, "1m1s|1m0s"},
		{"TTL below a member's", options{quorum.TTL(2 * second)}, quorum.ErrInvalidTTL, `2s|5s|"slow"`},
		{"TTL below the drift", options{quorum.TTL(10 * second), quorum.Drift(0.5, 5*second)}, quorum.ErrInvalidTTL, "10s"},
		{"F106 renewal as long as TTL", options{quorum.RenewEvery(15 * second)}, quorum.ErrInvalidOption, "RenewEvery|15s|TTL 15s"},
		{"F106 renewal twice TTL", options{quorum.RenewEvery(30 * second)}, quorum.ErrInvalidOption, "30s|TTL 15s"},
		{"F106 renewal just above the half", options{quorum.RenewEvery(7501 * time.Millisecond)}, quorum.ErrInvalidOption, "7.501s|TTL 15s"},
		{"F106 renewal below 0", options{quorum.RenewEvery(-1)}, quorum.ErrInvalidOption, "-1ns|TTL 15s"},
		{"F112 drift 5", options{quorum.Drift(5, 0)}, quorum.ErrInvalidOption, "5|0.01"},
		{"F112 drift 1", options{quorum.Drift(1, 0)}, quorum.ErrInvalidOption, "[0, 1)"},
		{"F112 drift -0.1", options{quorum.Drift(-0.1, 0)}, quorum.ErrInvalidOption, "-0.1"},
		{"F112 drift NaN", options{quorum.Drift(math.NaN(), 0)}, quorum.ErrInvalidOption, "NaN"},
		{"F112 fixed drift below 0", options{quorum.Drift(0, -1)}, quorum.ErrInvalidOption, "-1ns"},
		{"CallLimit above TTL", options{quorum.CallLimit(16 * second)}, quorum.ErrInvalidOption, "CallLimit|16s|15s"},
		{"CallLimit below 0", options{quorum.CallLimit(-1)}, quorum.ErrInvalidOption, "CallLimit"},
		{"InFlight 0", options{quorum.InFlight(0)}, quorum.ErrInvalidOption, "InFlight"},
		{"ReleaseLimit 0", options{quorum.ReleaseLimit(0)}, quorum.ErrInvalidOption, "ReleaseLimit"},
		{"F118 Backoff 0", options{quorum.Backoff(0, second)}, quorum.ErrInvalidOption, "Backoff|1ms"},
		{"Backoff upside down", options{quorum.Backoff(second, time.Millisecond)}, quorum.ErrInvalidOption, "Backoff(1s, 1ms)"},
		{"Expiring as long as TTL", options{quorum.Expiring(15 * second)}, quorum.ErrInvalidOption, "Expiring|15s"},
		{"MaxHold below 0", options{quorum.MaxHold(-1)}, quorum.ErrInvalidOption, "MaxHold"},
		{"no such order", options{quorum.AskOrder(9)}, quorum.ErrInvalidOption, "AskOrder(9)"},
		{"no clock", options{quorum.WithClock(nil)}, quorum.ErrInvalidOption, "WithClock"},
		{"Label too long", options{quorum.Label(strings.Repeat("x", 201))}, quorum.ErrInvalidOption, "Label|200"},
		{"Label with a newline", options{quorum.Label("a\nb")}, quorum.ErrInvalidOption, "Label"},
		{"Label that is no UTF-8", options{quorum.Label("\xff")}, quorum.ErrInvalidOption, "Label"},
		{"an Option of nobody's", options{{}}, quorum.ErrInvalidOption, "Option"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			slow := storetest.Spoil(memstore.New("slow"))
			slow.Pretend(func(l *quorum.Limits) { l.MinTTL = 5 * second })
			l, err := quorum.New(mustCombine(t, quorum.Consensus(), memstore.New("a"), slow), tc.options...)
			if l != nil || !errors.Is(err, tc.want) {
				t.Fatalf("New = %v, %v, want %v", l, err, tc.want)
			}
			for text := range strings.SplitSeq(tc.texts, "|") {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

func TestF106BoundsThatAreAllowed(t *testing.T) {
	for name, o := range map[string][]quorum.Option{
		"renewal at half":     {quorum.RenewEvery(7500 * time.Millisecond)},
		"renewal by default":  {quorum.RenewEvery(0)},
		"no renewal":          {quorum.NoRenew()},
		"F112 no drift":       {quorum.Drift(0, 0)},
		"F104 longest":        {quorum.TTL(24 * time.Hour), quorum.MaxTTL(24 * time.Hour)},
		"shortest":            {quorum.TTL(10 * time.Millisecond)},
		"a label of 200":      {quorum.Label(strings.Repeat("é", 100))},
		"a wait below 0 is 0": {quorum.Wait(-time.Second)},
	} {
		if _, err := quorum.New(memstore.New("a"), o...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestF140SettingsOfOneCall(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.Wait(10 * time.Second))
		must(t, l, "held", quorum.TTL(30*time.Second), quorum.Label("one call"))
		for _, tc := range []struct {
			options []quorum.Option
			wait    time.Duration
		}{
			{[]quorum.Option{quorum.Wait(0)}, 0}, {[]quorum.Option{quorum.Wait(time.Second)}, time.Second}, {nil, 10 * time.Second},
		} {
			start := time.Now()
			if _, err := l.Acquire(t.Context(), "held", tc.options...); !errors.Is(err, quorum.ErrHeld) {
				t.Errorf("a held key: %v", err)
			}
			within(t, "the wait", since(start), tc.wait, tc.wait+50*time.Millisecond)
		}
		first := b.spoil[b.ask("held")[0]].Log(storetest.Verbs(storetest.VerbAcquire))[0].Request
		if first.TTL != 30*time.Second || !strings.HasPrefix(first.Label, "one call (") {
			t.Errorf("the call with a TTL of its own asked for %v as %q", first.TTL, first.Label)
		}
		lease := must(t, l, "after")
		within(t, "what is left by default", lease.Remaining(), 14*time.Second, 15*time.Second)
		if r := b.spoil[b.ask("after")[0]].Log(func(c storetest.Call) bool { return c.Request.Key == "after" })[0].Request; strings.Contains(r.Label, "one call") {
			t.Errorf("the label of one call went on to the next: %q", r.Label)
		}
	})
}

func TestSettingsOfTheLockerAreRefusedOnACall(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, b *bed) {
		l := b.locker()
		for name, o := range map[string]quorum.Option{
			"MaxTTL": quorum.MaxTTL(time.Hour), "ReleaseLimit": quorum.ReleaseLimit(time.Second), "InFlight": quorum.InFlight(1), "Drift": quorum.Drift(0, 0),
			"Observe": quorum.Observe(func(quorum.Event) {}), "WithClock": quorum.WithClock(clock.Go()), "Cluster": quorum.Cluster(),
		} {
			lease, err := l.Acquire(t.Context(), "k", o)
			if lease != nil || !errors.Is(err, quorum.ErrInvalidOption) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s on a call: %v, %v, want ErrInvalidOption that names it", name, lease, err)
			}
		}
		if _, err := l.Acquire(t.Context(), "k", quorum.TTL(-1)); !errors.Is(err, quorum.ErrInvalidTTL) {
			t.Errorf("TTL below 0 on a call: %v", err)
		}
		lease := must(t, l, "k")
		for _, ttl := range []time.Duration{0, -time.Second, math.MinInt64, math.MaxInt64} {
			if err := lease.Extend(t.Context(), ttl); !errors.Is(err, quorum.ErrInvalidTTL) {
				t.Errorf("F104 Extend by %v: %v, want ErrInvalidTTL", ttl, err)
			}
		}
		if n := b.calls(storetest.VerbAcquire); n != 1 || b.calls(storetest.VerbExtend) != 0 {
			t.Errorf("%d acquires reached the store, want that of the good call alone", n)
		}
	})
}

func TestR59KeysAreCheckedBeforeAnyCall(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		for name, key := range map[string]string{
			"F175 empty": "", "F175 513 bytes": strings.Repeat("x", 513), "F175 4096 bytes": strings.Repeat("é", 2048),
			"F173 NUL": "a\x00b", "invalid UTF-8": "a\xffb", "half a rune": "\xc3",
		} {
			_, tried := b.locker().TryAcquire(t.Context(), key)
			lease, err := b.locker().Acquire(t.Context(), key)
			if lease != nil || !errors.Is(err, quorum.ErrInvalidKey) || !errors.Is(tried, quorum.ErrInvalidKey) || errors.Is(err, quorum.ErrHeld) {
				t.Errorf("%s: %v, %v, want ErrInvalidKey", name, lease, err)
			}
			if _, err := b.locker().Inspect(t.Context(), key); !errors.Is(err, quorum.ErrInvalidKey) {
				t.Errorf("%s: Inspect = %v, want ErrInvalidKey", name, err)
			}
		}
		if n := len(b.spoil[0].Log(nil)) + len(b.spoil[1].Log(nil)) + len(b.spoil[2].Log(nil)); n != 0 {
			t.Errorf("%d calls reached the stores", n)
		}
		for _, n := range []int{1, 64, 65, 255, 256, 512} {
			must(t, b.locker(), strings.Repeat("y", n))
		}
		must(t, b.locker(), "../../etc/x {a} \n ÿ 锁 %2F ")
	})
	t.Run("F175 a member that takes less", func(t *testing.T) {
		inBubble(t, 3, func(t *testing.T, b *bed) {
			b.spoil[1].Pretend(func(l *quorum.Limits) { l.MaxKey = 255 })
			l := b.locker()
			must(t, l, strings.Repeat("x", 255))
			_, err := l.Acquire(t.Context(), strings.Repeat("x", 256))
			if !errors.Is(err, quorum.ErrInvalidKey) || !strings.Contains(err.Error(), "256 bytes") || !strings.Contains(err.Error(), "255") {
				t.Errorf("a key that one store cannot take: %v, want both numbers", err)
			}
		})
	})
}

func TestR61LabelSaysWhoHoldsIt(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, b *bed) {
		l := b.locker(quorum.Label("the nightly job"))
		host, err := os.Hostname()
		if err != nil {
			t.Skip(err)
		}
		must(t, l, "k")
		must(t, l, "long", quorum.Label(strings.Repeat("é", 100)))
		b.settle()
		for i := range b.memory {
			label := b.holders(i, "k")[0].Label
			for _, part := range []string{host[:min(len(host), 10)], fmt.Sprint("pid ", os.Getpid()), "since 2000-01-01T00:00:00Z", "the nightly job"} {
				if !strings.Contains(label, part) {
					t.Errorf("store %d says that %q holds it, want %q in it", i, label, part)
				}
			}
			if long := b.holders(i, "long")[0].Label; len(long) > 256 || !strings.HasPrefix(long, strings.Repeat("é", 100)+" (") {
				t.Errorf("a label of %d bytes: %q", len(long), long)
			}
		}
		for key, says := range map[string]string{"k": "held by the nightly job (", "long": "held by ééé"} {
			if _, err := b.locker().TryAcquire(t.Context(), key); !errors.Is(err, quorum.ErrHeld) ||
				!strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "?") {
				t.Errorf("whoever is refused reads %v, want %q in it", err, says)
			}
		}
	})
}

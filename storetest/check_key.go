package storetest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/quorumlock/quorum"
)

var keyChecks = []check{
	{"key/alike names do not meet", "two names that differ by little would be one lock", func(c *call) {
		c.apart("Job", "job", "job ", " job", "job\t", "j\u00f6b", "jo\u0308b", "a/b", "a-b", "a_b", "a%2Fb", "a:b", "a.b", "a", "a/", "/a")
	}},
	{"key/braces and slashes are only letters", "a server's own syntax would join or split names", func(c *call) {
		c.apart("{a}b", "a{b}c", "a{}b", "a{b", "}a{", "{a}", "a", "{{a}}", "../../tmp/x", "/etc/x", "a/../b", "b", ".", "..", "*", "?", "[a]", "%", "_", "'", "\"", "\\", "a\nb", "$", ";", "-- ")
	}},
	{"key/unicode", "a name beyond ASCII would be cut or folded", func(c *call) {
		c.apart("\U0001F512", "\U0001F513", "Straße", "STRASSE", "ſ", "s", "\ufeffs", "\u200bs", "漢字", "漢", "\U0010FFFF", "\u0001")
	}},
	{"key/alike checksums do not meet", "names would be reduced to a short number and meet", func(c *call) {
		// Pairs with one CRC-32 each.
		c.apart("plumless", "buckeroo", "codding", "gnu")
	}},
	{"key/500 common bytes", "names would be cut and meet", func(c *call) {
		long := strings.Repeat("x", c.longest()-12)
		c.apart(long, long+"a", long+"b", long+"aaaaaaaaaaaa", long+"aaaaaaaaaaab")
	}},
	{"key/longest name", "a name at the limit would be cut or refused", func(c *call) {
		n := c.longest()
		for _, k := range []string{strings.Repeat("k", n), strings.Repeat("é", n/2), strings.Repeat("/", n), strings.Repeat("{", n)} {
			c.acquire(owner(), key(k))
			c.contended(owner(), key(k))
		}
	}},
	{"key/every length", "a name beyond some column or path limit would fail or be cut", func(c *call) {
		for _, n := range []int{1, 2, 63, 64, 65, 127, 128, 129, 200, 255, 256, 257, 400, 511, 512} {
			if n <= c.longest() {
				k := strings.Repeat("n", n)
				c.acquire(owner(), key(k))
				c.contended(owner(), key(k))
			}
		}
	}},
	{"key/empty is refused", "an empty name is a mistake of the caller", func(c *call) { c.invalid("") }},
	{"key/too long is refused", "a name would be cut", func(c *call) {
		c.invalid(strings.Repeat("k", c.longest()+1))
		c.invalid(strings.Repeat("k", 4096))
	}},
	{"key/NUL is refused", "a server would cut the name there", func(c *call) {
		c.invalid("a\x00b")
		c.invalid("\x00")
		c.invalid("a\x00")
	}},
	{"key/invalid UTF-8 is refused", "two clients would write the name differently", func(c *call) {
		c.invalid("a\xffb")
		c.invalid("\xc3")
		c.invalid("\xed\xa0\x80")
	}},
}

// longest returns the length of the longest name that the store takes.
func (c *call) longest() int {
	if n := c.store.Limits().MaxKey; n > 0 {
		return n
	}
	return 512
}

// apart takes all the names at once; each must be a lock of its own.
func (c *call) apart(names ...string) {
	for i, name := range names {
		if len(name) > c.longest() {
			continue
		}
		if _, err := c.tryAcquire(owner(), key(name)); err != nil {
			c.failf("%q = %v while only %s are held", short(name), err, quoted(names[:i]))
			continue
		}
		c.contended(owner(), key(name))
	}
}

// invalid demands that every verb refuses the name before anything is sent.
func (c *call) invalid(name string) {
	o := owner()
	_, acquired := c.tryAcquire(o, key(name))
	_, extended := c.tryExtend(o, key(name))
	released := c.tryRelease(o, key(name))
	for verb, err := range map[string]error{"Acquire": acquired, "Extend": extended, "Release": released} {
		if !errors.Is(err, quorum.ErrInvalidKey) {
			c.failf("%s of %q = %v, want ErrInvalidKey", verb, short(name), err)
			continue
		}
		if outcome := quorum.OutcomeOf(err); outcome != quorum.OutcomeUndelivered {
			c.failf("%s of %q counts as %s, want undelivered: wrap the error by quorum.Undelivered", verb, short(name), outcome)
		}
	}
}

// short cuts a long name for a message.
func short(name string) string {
	if len(name) <= 40 {
		return name
	}
	return fmt.Sprintf("%s… (%d bytes)", name[:32], len(name))
}

func quoted(names []string) string {
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = fmt.Sprintf("%q", short(n))
	}
	return strings.Join(texts, ", ")
}

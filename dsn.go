package quorum

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// SplitDSNs splits a text such as an environment variable at blanks, and at a
// comma that another DSN follows: a comma may also stand inside a DSN, as
// between the hosts of an etcd cluster. It checks nothing, see [ParseDSN].
func SplitDSNs(text string) []string {
	var found []string
	for _, word := range strings.Fields(text) {
		for i, part := range strings.Split(word, ",") {
			if i == 0 || beginsDSN.MatchString(part) {
				found = append(found, part)
			} else {
				found[len(found)-1] += "," + part
			}
		}
	}
	for i := range found {
		found[i] = strings.Trim(found[i], ",")
	}
	return slices.DeleteFunc(found, func(s string) bool { return s == "" })
}

// beginsDSN is a scheme and a slash: host:port is none.
var beginsDSN = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:/`)

// ParseDSN parses a DSN as [Open] does. Its error, an [ErrInvalidOption], says
// what is wrong and shows the DSN as [MaskDSN] does. Whether an [Opener] takes
// the scheme, and what it makes of the rest, only Open tells.
func ParseDSN(text string) (*url.URL, error) {
	if text == "" {
		return nil, fmt.Errorf("%w: the DSN is empty; write scheme://host/path, as in redis://host:6379", ErrInvalidOption)
	}
	u, err := url.Parse(text)
	var why string
	if err != nil {
		why = noURL(text, err)
	} else {
		why = noDSN(u)
	}
	if why != "" {
		return nil, fmt.Errorf("%w: DSN %q: %s", ErrInvalidOption, MaskDSN(text), why)
	}
	return u, nil
}

const (
	noScheme = "it has no scheme; write scheme://host/path, as in redis://host:6379"
	noPort   = "what follows the colon behind the host is no port; if it is a password's, escape its special characters: %2F for /, %3F for ?, %23 for #"
)

// noURL says why a text is no URL. The parser's own words would quote it,
// password included.
func noURL(text string, err error) string {
	scheme, rest, _ := strings.Cut(text, ":")
	if !beginsDSN.MatchString(scheme + ":/") {
		return noScheme
	}
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "it holds a control character, such as the end of a line"
	}
	if bad := url.EscapeError(""); errors.As(err, &bad) {
		return "it holds a % that begins no escape; write %25 for a % that is meant"
	}
	rest = strings.TrimPrefix(rest, "//")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	at := strings.LastIndex(rest, "@")
	host := rest[at+1:]
	colon := strings.LastIndex(host, ":")
	switch {
	case colon >= 0 && strings.Trim(host[colon+1:], "0123456789") != "" && !strings.HasSuffix(host, "]"):
		return noPort
	case at >= 0:
		return "the user, the password or the host holds a character that no URL does; escape those of a password: %40 for @, %20 for a blank"
	}
	return "its host holds a character that no host does, or a [ without a ]"
}

// noDSN says what is wrong with a URL as a DSN of any store.
func noDSN(u *url.URL) string {
	switch {
	case u.Scheme == "":
		return noScheme
	case misplaced(u):
		return "it holds an @, a : or a // where its path is; escape special characters of a password (%40 for @, %2F for /), " +
			"and separate several DSNs by blanks"
	case u.Opaque == "" && u.Host == "" && u.Path == "":
		return "it names neither a host nor a path"
	case u.Host != "" && u.Hostname() == "":
		return "it has a port and no host"
	}
	return ""
}

// defaultName is the part of a DSN that all clients of a store agree on.
func defaultName(o Opener, u *url.URL) string {
	if o.Name != nil {
		return o.Name(u)
	}
	name := url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}
	return name.String()
}

// MaskDSN returns a DSN fit to be shown: passwords and secret settings are
// replaced by xxxxx. Of a text that is no DSN nothing is shown but the scheme.
func MaskDSN(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil && strings.Contains(dsn, "://") && beginsDSN.MatchString(dsn) {
		scheme, _, _ := strings.Cut(dsn, ":")
		return scheme + "://xxxxx"
	}
	if err != nil || u.Scheme == "" {
		return "xxxxx"
	}
	if strings.Contains(u.Opaque, "@") { // user:password@host, with the scheme forgotten
		return u.Scheme + ":xxxxx"
	}
	if misplaced(u) {
		return u.Scheme + "://xxxxx"
	}
	_, password := u.User.Password()
	// Consul has no users: it is a token with the colon before it forgotten.
	alone := u.User != nil && !password && strings.HasPrefix(u.Scheme, "consul")
	if len(secretsOf(u)) == 0 && !alone {
		return dsn
	}
	switch {
	case password:
		u.User = url.UserPassword(u.User.Username(), "xxxxx")
	case alone:
		u.User = url.User("xxxxx")
	}
	query := u.Query()
	for key := range query {
		if secretKey(key) {
			query.Set(key, "xxxxx")
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// misplaced reports whether what follows the host may hold a password, as where
// two DSNs were run together by something else than a blank.
func misplaced(u *url.URL) bool {
	return u.Host != "" && (strings.Contains(u.Path, "@") || strings.HasPrefix(u.Path, "/:") || strings.Contains(u.Path, "://")) ||
		strings.HasPrefix(u.Path, "//")
}

// withoutSecrets returns err as it is if its text shows no secret of the DSN.
// Otherwise it keeps the masked text alone: whoever unwraps the error must not
// meet the secret either.
func withoutSecrets(err error, u *url.URL) error {
	text := err.Error()
	for _, secret := range secretsOf(u) {
		text = strings.ReplaceAll(text, secret, "xxxxx")
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

// secretsOf lists the secrets in a DSN, plain and as escaped in a URL, the
// longest first.
func secretsOf(u *url.URL) []string {
	var plain []string
	if password, ok := u.User.Password(); ok {
		plain = append(plain, password)
	}
	for key, values := range u.Query() {
		if secretKey(key) {
			plain = append(plain, values...)
		}
	}
	var all []string
	for _, s := range plain {
		if s != "" {
			_, inUser, _ := strings.Cut(url.UserPassword("", s).String(), ":")
			all = append(all, s, url.QueryEscape(s), url.PathEscape(s), inUser)
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return all
}

// secretKey reports whether a query parameter's value is a secret.
func secretKey(key string) bool {
	key = strings.ToLower(key)
	return slices.ContainsFunc([]string{"pass", "pwd", "secret", "token"}, func(word string) bool {
		return strings.Contains(key, word)
	})
}

package quorum

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// defaultName is the part of a DSN that all clients of a store agree on.
func defaultName(o Opener, u *url.URL) string {
	if o.Name != nil {
		return o.Name(u)
	}
	name := url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: strings.TrimRight(u.Path, "/")}
	return name.String()
}

// MaskDSN returns a DSN fit to be shown: passwords and secret settings are
// replaced by xxxxx. Of a text that is no DSN nothing is shown.
func MaskDSN(dsn string) string {
	u, err := url.Parse(dsn)
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

package fence

import (
	"context"
	"errors"
	"net/http"
	"strconv"
)

// Header is the field of a request that carries the token.
const Header = "X-Fencing-Token"

// SetHeader puts a lease's token on a request.
func SetHeader(h http.Header, token int64) { h.Set(Header, strconv.FormatInt(token, 10)) }

// Require lets a request through only with a token in [Header] that the guard
// admits for the name that the request is about. Without one it answers 428
// Precondition Required, with what is no token 400, with a stale one 412
// Precondition Failed, and when the guard does not answer 503.
//
// The handler's own write comes after the admission: of two requests that were
// both admitted the older one may still write last. Where that matters, let the
// handler take [Token] and give it to the guard of the write itself.
func Require(g Guard, name func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		field := r.Header.Get(Header)
		token, err := strconv.ParseInt(field, 10, 64)
		switch {
		case field == "":
			http.Error(w, "this resource is written under a lock: send its token in "+Header, http.StatusPreconditionRequired)
			return
		case err != nil || token < 1:
			http.Error(w, Header+" is no token", http.StatusBadRequest)
			return
		}
		if err := g.Admit(r.Context(), name(r), token); err != nil {
			status := http.StatusServiceUnavailable
			text := "the guard of this resource does not answer"
			if errors.Is(err, ErrStale) {
				status, text = http.StatusPreconditionFailed, err.Error()
			}
			http.Error(w, text, status)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), tokenKey{}, token)))
	})
}

type tokenKey struct{}

// Token returns the token of a request that [Require] let through, or 0.
func Token(ctx context.Context) int64 {
	token, _ := ctx.Value(tokenKey{}).(int64)
	return token
}

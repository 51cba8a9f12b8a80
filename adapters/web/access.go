package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"parley/config/secret"
)

// cookieAge is long: the cookie ends when the token changes.
const cookieAge = 365 * 24 * 60 * 60

// access knows whoever opened the printed URL once. Any page in any browser can
// reach a loopback port, so that the address alone proves nothing.
type access struct {
	token []byte // its digest
	// name differs between installations: cookies are shared by all ports of a host.
	name, value string
}

func newAccess(token secret.String) access {
	derive := func(purpose string) []byte {
		m := hmac.New(sha256.New, []byte(token.Reveal()))
		m.Write([]byte(purpose))
		return m.Sum(nil)
	}
	digest := sha256.Sum256([]byte(token.Reveal()))
	return access{
		token: digest[:],
		name:  "parley_" + hex.EncodeToString(derive("parley web cookie name")[:4]),
		value: hex.EncodeToString(derive("parley web cookie")),
	}
}

// wrongToken is what the sign-in page says of a token that does not fit.
const wrongToken = `<p class="note" role="alert">That token is not valid here. Take the URL from the newest start of parley.</p>`

// pasted is the token in what a person gave for it: the token, or the whole URL.
func pasted(s string) string {
	if _, after, ok := strings.Cut(s, "token="); ok {
		s, _, _ = strings.Cut(after, "&")
	}
	return strings.TrimSpace(s)
}

// redeem says whether a token is the printed one.
func (a access) redeem(token string) bool {
	digest := sha256.Sum256([]byte(token))
	return hmac.Equal(digest[:], a.token)
}

// grant sets the cookie: no script reads it, no other site's request carries it.
func (a access) grant(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{
		Name: a.name, Value: a.value, Path: "/", MaxAge: cookieAge,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	})
}

func (a access) granted(r *http.Request) bool {
	c, err := r.Cookie(a.name)
	return err == nil && hmac.Equal([]byte(c.Value), []byte(a.value))
}

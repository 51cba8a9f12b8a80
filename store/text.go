package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// text makes any bytes storable in a text column: NUL, and each byte that is not
// UTF-8 (so also lone surrogates), becomes U+FFFD (PGS-005). It is what encoding
// as JSON does, so that an id reads the same in a text and in a json column.
func text[T ~string](s T) string {
	v := string(s)
	if utf8.ValidString(v) && strings.IndexByte(v, 0) < 0 {
		return v
	}
	return strings.Map(func(r rune) rune {
		if r == 0 {
			return utf8.RuneError
		}
		return r
	}, v)
}

// bounded is text of at most limit bytes, for columns under a btree index, which
// refuses long values (PGS-010). A longer value keeps its start and gets a hash of
// the whole, so that different values stay different.
func bounded[T ~string](s T, limit int) string {
	v := text(s)
	if len(v) <= limit {
		return v
	}
	sum := sha256.Sum256([]byte(v))
	tail := "~" + hex.EncodeToString(sum[:16])
	return strings.ToValidUTF8(v[:limit-len(tail)], "") + tail
}

// jsonList is a list as the text of a json column, nil for the empty list.
func jsonList[T any](v []T) *string {
	if len(v) == 0 {
		return nil
	}
	return jsonOf(v)
}

// jsonOf is a value as the text of a json column. It is for types that can always
// be encoded; raw JSON in them goes through validJSON first.
func jsonOf(v any) *string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // an issuer's own form is stored as it came
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("store: %T as JSON: %v", v, err))
	}
	s := storableJSON(strings.TrimSuffix(b.String(), "\n"))
	return &s
}

// validJSON keeps raw bytes that are no JSON as a JSON string.
func validJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || json.Valid(raw) {
		return raw
	}
	s, _ := json.Marshal(string(raw)) // a string can always be encoded
	return s
}

// storableJSON replaces what PostgreSQL could not read back: escaped NULs and lone
// surrogates, in the escapes only. An escaped backslash before "u0000" is text
// and stays.
func storableJSON(s string) string {
	s = text(s)
	if !strings.Contains(s, `\u`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		switch {
		case s[i] != '\\' || i+1 == len(s):
			b.WriteByte(s[i])
			i++
		case s[i+1] != 'u':
			b.WriteString(s[i : i+2])
			i += 2
		default:
			n, out := escape(s[i:])
			b.WriteString(out)
			i += n
		}
	}
	return b.String()
}

// escape reads the \uXXXX at the start of s, or the pair of a surrogate, and
// returns its length and what to store for it.
func escape(s string) (int, string) {
	const bad = `\ufffd`
	first, ok := codeUnit(s)
	switch {
	case !ok:
		return 2, s[:2]
	case first == 0 || low(first):
		return 6, bad
	case !high(first):
		return 6, s[:6]
	}
	if second, ok := codeUnit(s[6:]); ok && low(second) {
		return 12, s[:12]
	}
	return 6, bad
}

func high(u uint16) bool { return u >= 0xD800 && u < 0xDC00 }
func low(u uint16) bool  { return u >= 0xDC00 && u < 0xE000 }

// codeUnit reads a \uXXXX at the start of s.
func codeUnit(s string) (uint16, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	b, err := hex.DecodeString(s[2:6])
	if err != nil {
		return 0, false
	}
	return uint16(b[0])<<8 | uint16(b[1]), true
}

// head is the first n bytes of s without a broken character at the end.
func head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

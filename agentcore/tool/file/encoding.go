package file

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
)

// kind is how a file's bytes are text.
type kind struct {
	// name is empty for plain UTF-8.
	name string
	// mark is the byte order mark.
	mark string
	// codec is nil for UTF-8.
	codec encoding.Encoding
	// binary is the content type of what is no text, else empty.
	binary string
}

// kindOf tells a file's encoding by its beginning. Bytes that are no UTF-8 are read
// as Latin-1, in which every byte is a character, so that an edit keeps the others.
func kindOf(head []byte) kind {
	switch {
	case bytes.HasPrefix(head, []byte("\xEF\xBB\xBF")):
		return kind{name: "UTF-8 with a byte order mark", mark: "\xEF\xBB\xBF"}
	case bytes.HasPrefix(head, []byte("\xFF\xFE")):
		return kind{name: "UTF-16LE", mark: "\xFF\xFE", codec: unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)}
	case bytes.HasPrefix(head, []byte("\xFE\xFF")):
		return kind{name: "UTF-16BE", mark: "\xFE\xFF", codec: unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)}
	case bytes.IndexByte(head, 0) >= 0 || controls(head)*10 > len(head):
		return kind{binary: http.DetectContentType(head)}
	case utf8.Valid(whole(head)):
		return kind{}
	}
	return kind{name: "Latin-1", codec: charmap.ISO8859_1}
}

// controls counts control characters that no text has.
func controls(b []byte) (n int) {
	for _, c := range b {
		if c < ' ' && !strings.ContainsRune("\t\n\r\f\v\b\x1b", rune(c)) {
			n++
		}
	}
	return n
}

// whole takes off a character that the end of b has parted.
func whole(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// reader decodes r, whose mark has been read.
func (k kind) reader(r io.Reader) io.Reader {
	if k.codec == nil {
		return r
	}
	return transform.NewReader(r, k.codec.NewDecoder())
}

// decode returns the text of a whole file; ok is false if writing it back would not
// give the same bytes. UTF-8 is not looked at: what is not valid stays as it is.
func (k kind) decode(b []byte) (text string, ok bool) {
	b = b[len(k.mark):]
	if k.codec == nil {
		return string(b), true
	}
	out, err := k.codec.NewDecoder().Bytes(b)
	if err != nil {
		return "", false
	}
	back, err := k.codec.NewEncoder().Bytes(out)
	return string(out), err == nil && bytes.Equal(back, b)
}

// encode is the bytes of a text; it fails on a character that the encoding has not.
func (k kind) encode(text string) ([]byte, error) {
	if k.codec == nil {
		return []byte(k.mark + text), nil
	}
	b, err := k.codec.NewEncoder().Bytes([]byte(text))
	if err != nil {
		return nil, problemf("The file is %s, which cannot hold all characters of the new text.", k.name)
	}
	return append([]byte(k.mark), b...), nil
}

// lineEnd is what ends the lines of a text: "\n", "\r\n", or "" where both do.
func lineEnd(text string) string {
	all, pairs := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case pairs == 0:
		return "\n"
	case pairs == all:
		return "\r\n"
	}
	return ""
}

// withLineEnd gives a text these line ends.
func withLineEnd(text, end string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if end == "\r\n" {
		text = strings.ReplaceAll(text, "\n", end)
	}
	return text
}

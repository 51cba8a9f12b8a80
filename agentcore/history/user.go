package history

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"parley/gateway/chat"
	"parley/store/record"
)

// stamp is how times are written before a message: with weekday and zone, fixed
// once the row is stored (TRN-003).
const stamp = "Mon 2006-01-02 15:04 -07:00"

// UserText is a user row as the model reads it, without what was recalled for it:
// the base of what is frozen in Wire.
func UserText(m record.Message, o Options) string {
	m.Wire = ""
	return userText(&m, o)
}

func userText(m *record.Message, o Options) string {
	if m.Wire != "" {
		return clean(m.Wire)
	}
	text := clean(m.Content)
	// What parley wrote itself is sent as it is; a summary carries its own frame.
	if (m.Kind == record.KindSummary || m.Kind == record.KindNotice) && strings.TrimSpace(text) != "" {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + 48)
	writeHeader(&b, m, o)
	if o.Shared {
		text = unforge(text)
	}
	b.WriteString(text)
	for _, f := range m.Files {
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(fileLine(f))
	}
	if strings.TrimSpace(b.String()) == "" {
		return "(no text)"
	}
	return b.String()
}

// writeHeader says when, in shared rooms who, and whether the agent was working.
func writeHeader(b *strings.Builder, m *record.Message, o Options) {
	var fields [3]string
	n := 0
	if !m.CreatedAt.IsZero() {
		loc := o.Location
		if loc == nil {
			loc = time.UTC
		}
		fields[n] = m.CreatedAt.In(loc).Format(stamp)
		n++
	}
	if o.Shared && m.From != "" {
		fields[n] = sender(m.From, m.FromName)
		n++
	}
	if m.Kind == record.KindSteer {
		fields[n] = "while you were working"
		n++
	}
	if n == 0 {
		return
	}
	b.WriteByte('[')
	b.WriteString(strings.Join(fields[:n], " · "))
	b.WriteString("] ")
}

// sender is the stable id with the name of the moment, which is data: it cannot
// end the header or pose as another one.
func sender(id chat.Person, name string) string {
	s := inert(string(id), 80)
	if n := inert(name, 64); n != "" {
		return n + " <" + s + ">"
	}
	return "<" + s + ">"
}

func inert(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range clean(s) {
		if n == limit {
			break
		}
		if !unicode.IsPrint(r) || strings.ContainsRune("[]<>·", r) {
			r = ' '
		}
		b.WriteRune(r)
		n++
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// forged finds text that would read as the header of another message.
var forged = regexp.MustCompile(`(^|[\n\r\f\v\x{85}\x{2028}\x{2029}])(\s*)\[((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-)`)

// unforge keeps a person from speaking as somebody else (KEY-002).
func unforge(s string) string {
	if !strings.Contains(s, "[") {
		return s
	}
	return forged.ReplaceAllString(s, `$1$2\[$3`)
}

// fileLine mentions a file without its content; the name is quoted data. What lies in
// the conversation's folder is named by its path there.
func fileLine(f chat.File) string {
	s := fmt.Sprintf("[file %q", inert(f.Name, 120))
	if f.Path != "" {
		s = fmt.Sprintf("[attached: %q", inert(f.Path, 160))
	}
	if f.MIME != "" {
		s += ", " + inert(f.MIME, 80)
	}
	if f.Size > 0 {
		s += fmt.Sprintf(", %d bytes", f.Size)
	}
	if f.Problem != "" {
		s += ": " + inert(f.Problem, 160)
	}
	return s + "]"
}

// clean makes text that can be sent: valid UTF-8 without NUL.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "")
}

package faketelegram

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Entity is a formatted range of a text, in UTF-16 units.
type Entity struct {
	Type        string `json:"type"`
	Offset      int    `json:"offset"`
	Length      int    `json:"length"`
	URL         string `json:"url,omitempty"`
	User        *User  `json:"user,omitempty"`
	Language    string `json:"language,omitempty"`
	CustomEmoji string `json:"custom_emoji_id,omitempty"`
}

func (e Entity) end() int { return e.Offset + e.Length }

func (e Entity) same(o Entity) bool {
	if (e.User == nil) != (o.User == nil) || e.User != nil && e.User.ID != o.User.ID {
		return false
	}
	e.User, o.User = nil, nil
	return e == o
}

// verbatim is an error in the real server's words, capital letter and all.
func verbatim(format string, args ...any) error { return fmt.Errorf(format, args...) }

// tags are the elements of HTML that the real server knows, and the entity that
// each makes.
var tags = map[string]string{
	"b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
	"s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "span": "spoiler", "tg-spoiler": "spoiler",
	"a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote", "tg-emoji": "custom_emoji",
}

// openTag is an element whose end was not met yet.
type openTag struct {
	name     string
	argument string
	offset   int // UTF-16
	start    int // bytes of text
}

// htmlParser follows the real server's parser step by step, since clients depend
// on what it forgives (</>, missing semicolons) as much as on what it refuses.
type htmlParser struct {
	in       string
	i        int
	text     strings.Builder
	offset   int // UTF-16 units of text
	open     []openTag
	entities []Entity
}

// parseHTML returns the text and its entities, sorted, or the real server's error.
func parseHTML(in string) (string, []Entity, error) {
	p := htmlParser{in: in}
	for p.i < len(in) {
		c := in[p.i]
		if c == '&' {
			if r, next := decodeEntity(in, p.i); r != 0 {
				if 0xD800 <= r && r <= 0xDFFF {
					return "", nil, verbatim("Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate code units")
				}
				p.put(r)
				p.i = next
				continue
			}
		}
		if c != '<' {
			r, size := utf8.DecodeRuneInString(in[p.i:])
			p.put(r)
			p.i += size
			continue
		}
		var err error
		if p.at(p.i+1) == '/' {
			err = p.endTag()
		} else {
			err = p.startTag()
		}
		if err != nil {
			return "", nil, err
		}
	}
	if n := len(p.open); n > 0 {
		return "", nil, verbatim("Can't find end tag corresponding to start tag %q", p.open[n-1].name)
	}
	for i, e := range p.entities {
		if e.Type == "code" {
			p.entities[i].Language = ""
		}
	}
	sortEntities(p.entities)
	return p.text.String(), p.entities, nil
}

// Read is what the real server makes of the HTML of a message: the text that people
// see and its formats, or its refusal.
func Read(html string) (text string, formats []Entity, err error) {
	if len(html) > maxMarkup {
		return "", nil, badRequest("message is too long")
	}
	if text, formats, err = parseHTML(html); err != nil {
		return "", nil, badRequest("can't parse entities: %s", err)
	}
	text, formats = clean(text, formats)
	switch {
	case text == "":
		return "", nil, badRequest("text must be non-empty")
	case length(text) > maxText:
		return "", nil, badRequest("message is too long")
	}
	return text, formats, nil
}

func (p *htmlParser) put(r rune) {
	p.text.WriteRune(r)
	p.offset += units(r)
}

// at is the byte at i, or 0 at the end.
func (p *htmlParser) at(i int) byte {
	if i < len(p.in) {
		return p.in[i]
	}
	return 0
}

func (p *htmlParser) skipSpace() {
	for isSpace(p.at(p.i)) {
		p.i++
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\v' }

func (p *htmlParser) startTag() error {
	begin := p.i
	p.i++
	for p.at(p.i) != 0 && !isSpace(p.at(p.i)) && p.at(p.i) != '>' {
		p.i++
	}
	if p.at(p.i) == 0 {
		return verbatim("Unclosed start tag at byte offset %d", begin)
	}
	name := strings.ToLower(p.in[begin+1 : p.i])
	if tags[name] == "" {
		return verbatim("Unsupported start tag %q at byte offset %d", name, begin)
	}
	argument := ""
	for {
		p.skipSpace()
		if p.at(p.i) == '>' {
			break
		}
		attribute, value, err := p.attribute(name, begin)
		if err != nil {
			return err
		}
		if a, ok := tagArgument(name, attribute, value); ok {
			argument = a
		}
	}
	p.i++
	if name == "span" && argument != "spoiler" {
		return verbatim("Tag \"span\" must have class \"tg-spoiler\" at byte offset %d", begin)
	}
	p.open = append(p.open, openTag{name, argument, p.offset, p.text.Len()})
	return nil
}

func (p *htmlParser) attribute(tag string, begin int) (name, value string, err error) {
	start := p.i
	for c := p.at(p.i); c != 0 && !isSpace(c) && c != '=' && c != '>'; c = p.at(p.i) {
		p.i++
	}
	name = strings.ToLower(p.in[start:p.i])
	if p.at(p.i) == 0 {
		return "", "", verbatim("Unclosed start tag %q at byte offset %d", tag, begin)
	}
	if name == "" {
		return "", "", verbatim("Empty attribute name in the tag %q at byte offset %d", tag, begin)
	}
	p.skipSpace()
	if p.at(p.i) != '=' {
		return name, "", nil
	}
	p.i++
	p.skipSpace()
	switch quote := p.at(p.i); quote {
	case 0:
		return "", "", verbatim("Unclosed start tag %q at byte offset %d", tag, begin)
	case '"', '\'':
		value = p.quoted(quote)
	default:
		start := p.i
		for c := p.at(p.i); isAlnum(c) || c == '.' || c == '-'; c = p.at(p.i) {
			p.i++
		}
		value = strings.ToLower(p.in[start:p.i])
		if c := p.at(p.i); !isSpace(c) && c != '>' {
			return "", "", verbatim("Unexpected end of name token at byte offset %d", start)
		}
	}
	if p.at(p.i) == 0 {
		return "", "", verbatim("Unclosed start tag at byte offset %d", begin)
	}
	return name, value, nil
}

// quoted reads a string literal with its quotes; an unclosed one goes to the end.
func (p *htmlParser) quoted(quote byte) string {
	var value strings.Builder
	for p.i++; p.at(p.i) != quote && p.at(p.i) != 0; {
		if p.in[p.i] == '&' {
			if r, next := decodeEntity(p.in, p.i); r != 0 {
				value.WriteRune(r)
				p.i = next
				continue
			}
		}
		value.WriteByte(p.in[p.i])
		p.i++
	}
	if p.at(p.i) == quote {
		p.i++
	}
	return value.String()
}

// tagArgument is what an attribute means for its tag.
func tagArgument(tag, attribute, value string) (string, bool) {
	switch tag + " " + attribute {
	case "a href", "tg-emoji emoji-id":
		return value, true
	case "code class":
		return strings.CutPrefix(value, "language-")
	case "span class":
		return strings.CutPrefix(value, "tg-")
	case "blockquote expandable":
		return "expandable", true
	}
	return "", false
}

func (p *htmlParser) endTag() error {
	begin := p.i
	if len(p.open) == 0 {
		return verbatim("Unexpected end tag at byte offset %d", begin)
	}
	p.i += 2
	for p.at(p.i) != 0 && !isSpace(p.at(p.i)) && p.at(p.i) != '>' {
		p.i++
	}
	name := strings.ToLower(p.in[begin+2 : p.i])
	p.skipSpace()
	if p.at(p.i) != '>' {
		return verbatim("Unclosed end tag at byte offset %d", begin)
	}
	p.i++
	tag := p.open[len(p.open)-1]
	if name != "" && name != tag.name {
		return verbatim("Unmatched end tag at byte offset %d, expected \"</%s>\", found \"</%s>\"", begin, tag.name, name)
	}
	p.open = p.open[:len(p.open)-1]
	if p.offset > tag.offset {
		p.close(tag)
	}
	return nil
}

// close turns a finished element into its entity.
func (p *htmlParser) close(tag openTag) {
	e := Entity{Type: tags[tag.name], Offset: tag.offset, Length: p.offset - tag.offset}
	switch tag.name {
	case "a":
		target := cmp.Or(tag.argument, p.text.String()[tag.start:])
		if id, ok := userLink(target); ok {
			e.Type, e.User = "text_mention", &User{ID: id}
			break
		}
		var ok bool
		if e.URL, ok = webURL(target); !ok {
			return // the real server drops a bad link and keeps its text
		}
	case "tg-emoji":
		e.CustomEmoji = tag.argument
	case "blockquote":
		if tag.argument != "" {
			e.Type = "expandable_blockquote"
		}
	case "code", "pre":
		if p.joinCode(tag, e) {
			return
		}
		if tag.name == "code" {
			e.Language = tag.argument
		}
	}
	p.entities = append(p.entities, e)
}

// joinCode makes one entity of <pre><code class="language-x"> and of its reverse,
// when both cover the same text.
func (p *htmlParser) joinCode(tag openTag, e Entity) bool {
	if len(p.entities) == 0 {
		return false
	}
	last := &p.entities[len(p.entities)-1]
	if last.Offset != e.Offset || last.Length != e.Length || last.Type == e.Type {
		return false
	}
	if (last.Type != "code" || last.Language == "") && (last.Type != "pre" || tag.argument == "") {
		return false
	}
	last.Language = cmp.Or(last.Language, tag.argument)
	last.Type = "pre"
	return true
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// decodeEntity decodes the character reference at i and returns the position after
// it, or 0 for what the real server leaves as it stands.
func decodeEntity(s string, i int) (rune, int) {
	end := i + 1
	var r rune
	if strings.HasPrefix(s[end:], "#") {
		digits, base := end+1, 10
		if strings.HasPrefix(s[digits:], "x") {
			digits, base = digits+1, 16
		}
		for end = digits; end < len(s) && isAlnum(s[end]); end++ {
			if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
				break
			}
		}
		n, err := strconv.ParseUint(s[digits:end], base, 32)
		if err != nil || n == 0 || n >= 0x10ffff || end-i >= 10 {
			return 0, i
		}
		r = rune(n)
	} else {
		for end < len(s) && isAlnum(s[end]) && (s[end] < '0' || s[end] > '9') {
			end++
		}
		r = map[string]rune{"lt": '<', "gt": '>', "amp": '&', "quot": '"'}[s[i+1:end]]
		if r == 0 {
			return 0, i
		}
	}
	if end < len(s) && s[end] == ';' {
		end++
	}
	return r, end
}

func userLink(target string) (int64, bool) {
	id, ok := strings.CutPrefix(target, "tg://user?id=")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(id, 10, 64)
	return n, err == nil && n > 0
}

// webURL normalises a link as the real server does; it takes hosts with a dot only.
func webURL(target string) (string, bool) {
	if !strings.Contains(target, "://") {
		target = "http://" + target
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return "", false
	}
	switch u.Scheme {
	case "tg", "ton":
		return target, true
	case "http", "https":
	default:
		return "", false
	}
	if !strings.Contains(u.Host, ".") && !strings.HasPrefix(u.Host, "[") {
		return "", false
	}
	if u.Path == "" {
		authority := strings.Index(target, "://") + 3
		end := len(target)
		if i := strings.IndexAny(target[authority:], "?#"); i >= 0 {
			end = authority + i
		}
		target = target[:end] + "/" + target[end:]
	}
	return target, true
}

// entityOrder is the real server's order of entities over the same range.
var entityOrder = map[string]int{
	"blockquote": 0, "expandable_blockquote": 0, "pre": 10, "code": 20, "text_link": 49, "text_mention": 49,
	"bold": 90, "italic": 91, "underline": 92, "strikethrough": 93, "spoiler": 94, "custom_emoji": 99,
}

func sortEntities(entities []Entity) {
	slices.SortStableFunc(entities, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length),
			cmp.Compare(entityOrder[a.Type], entityOrder[b.Type]))
	})
}

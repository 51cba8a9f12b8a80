package faketelegram

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// The real server's limits on text.
const (
	maxText     = 4096     // UTF-16 units of a message after parsing
	maxCaption  = 1024     // the same for the caption of a file
	maxMarkup   = 32 << 10 // bytes of a message before parsing (SPL-014)
	maxEntities = 100      // what comes after is dropped in silence
)

// content is what a message says.
type content struct {
	text      string
	html      string // as sent, when it was HTML
	entities  []Entity
	keyboard  [][]Button
	noPreview bool
}

func (c content) same(d content) bool {
	return c.text == d.text && slices.EqualFunc(c.entities, d.entities, Entity.same) &&
		slices.EqualFunc(c.keyboard, d.keyboard, slices.Equal)
}

// content parses the text of a call: the parameter text or caption with its
// entities or its parse mode.
func (s *Server) content(r *request, parameter string) (content, error) {
	c := content{text: r.params[parameter]}
	if len(c.text) > maxMarkup {
		return c, badRequest("message is too long")
	}
	switch mode := r.params["parse_mode"]; {
	case strings.EqualFold(mode, "html"):
		c.html = c.text
		var err error
		if c.text, c.entities, err = parseHTML(c.html); err != nil {
			return c, badRequest("can't parse entities: %s", err)
		}
	case mode != "":
		s.violation(Violation{r.method, "parse_mode", "this server knows HTML only, not " + mode})
		return c, badRequest("unsupported parse_mode")
	case parameter == "text":
		r.json("entities", &c.entities)
	default:
		r.json("caption_entities", &c.entities)
	}
	c.text, c.entities = clean(c.text, c.entities)
	if slices.ContainsFunc(c.entities, func(e Entity) bool { return e.Type == "text_mention" }) {
		s.violation(Violation{r.method, parameter, "calls somebody: a model may have been told to"})
	}
	if parameter == "caption" {
		if length(c.text) > maxCaption {
			return c, badRequest("message caption is too long")
		}
		return c, nil
	}
	var preview struct {
		Disabled bool `json:"is_disabled"`
	}
	r.json("link_preview_options", &preview)
	c.noPreview = preview.Disabled
	switch {
	case r.params[parameter] == "":
		return c, badRequest("message text is empty")
	case c.text == "":
		return c, badRequest("text must be non-empty")
	case length(c.text) > maxText:
		return c, badRequest("message is too long")
	}
	return c, nil
}

// clean does to a text what the real server does before it stores it: control
// characters become spaces, the ends are trimmed, code holds no other format, and
// entities beyond the hundredth are lost.
func clean(text string, entities []Entity) (string, []Entity) {
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' {
			return ' '
		}
		return r
	}, text)
	trimmed := strings.TrimRight(text, " \n\u00a0")
	left := strings.TrimLeft(trimmed, " \n\u00a0")
	shift := length(trimmed) - length(left)
	size := length(left)
	var kept []Entity
	for _, e := range entities {
		begin, end := max(e.Offset-shift, 0), min(e.end()-shift, size)
		if end > begin {
			e.Offset, e.Length = begin, end-begin
			kept = append(kept, e)
		}
	}
	kept = separate(kept)
	if len(kept) > maxEntities {
		kept = kept[:maxEntities:maxEntities]
	}
	return left, kept
}

// separate takes styles out of code and drops quotes inside quotes.
func separate(entities []Entity) []Entity {
	sortEntities(entities)
	var result []Entity
	quoteEnd := 0
	for _, e := range entities {
		switch {
		case strings.HasSuffix(e.Type, "blockquote"):
			if e.Offset >= quoteEnd {
				quoteEnd = e.end()
				result = append(result, e)
			}
		case entityOrder[e.Type] < entityOrder["bold"]:
			result = append(result, e)
		default:
			result = append(result, outsideCode(e, entities)...)
		}
	}
	sortEntities(result)
	return result
}

// outsideCode cuts the ranges of code out of a style.
func outsideCode(e Entity, entities []Entity) []Entity {
	var pieces []Entity
	for _, code := range entities {
		if code.Type != "code" && code.Type != "pre" || code.Offset >= e.end() || code.end() <= e.Offset {
			continue
		}
		if code.Offset > e.Offset {
			before := e
			before.Length = code.Offset - e.Offset
			pieces = append(pieces, before)
		}
		end := max(e.end(), code.end())
		e.Offset, e.Length = code.end(), end-code.end()
	}
	if e.Length > 0 {
		pieces = append(pieces, e)
	}
	return pieces
}

var (
	commandPattern = regexp.MustCompile(`(?:^|[^\w/@])(/\w{1,64}(?:@\w{3,32})?)`)
	mentionPattern = regexp.MustCompile(`(?:^|[^\w/@])(@\w{3,32})`)
	linkPattern    = regexp.MustCompile(`(?:^|\s)(https?://\S+)`)
)

// detect finds commands, mentions and links in what a person writes.
func detect(text string) []Entity {
	var found []Entity
	for _, p := range []struct {
		typ     string
		pattern *regexp.Regexp
	}{{"bot_command", commandPattern}, {"mention", mentionPattern}, {"url", linkPattern}} {
		for _, m := range p.pattern.FindAllStringSubmatchIndex(text, -1) {
			found = append(found, Entity{Type: p.typ, Offset: length(text[:m[2]]), Length: length(text[m[2]:m[3]])})
		}
	}
	slices.SortFunc(found, func(a, b Entity) int { return cmp.Compare(a.Offset, b.Offset) })
	return found
}

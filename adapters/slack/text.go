package slack

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	"parley/gateway/chat"
)

// said is what a message says.
type said struct {
	text      string // plain, without the bot's own name
	mentioned bool
}

// token matches what Slack writes in angle brackets: mentions, channels, addresses.
// A bracket that somebody typed is escaped.
var token = regexp.MustCompile(`<([^<>]+)>`)

// decodeEntities decodes exactly the three entities that Slack escapes, in one pass
// (MKD-001).
var decodeEntities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// said reads a message: its text, else what its blocks or its attachments say
// (ATT-001). Tokens come first and entities after, so that no mention arises from
// what was typed.
func (a *Adapter) said(ctx context.Context, m *message) said {
	raw := m.Text
	if strings.TrimSpace(raw) == "" {
		raw = blockText(m.Blocks)
	}
	if strings.TrimSpace(raw) == "" {
		raw = attachmentText(m.Attachments)
	}
	bot := a.bot().UserID
	var out said
	var b strings.Builder
	at := 0
	for _, t := range token.FindAllStringIndex(raw, -1) {
		b.WriteString(decodeEntities.Replace(raw[at:t[0]]))
		at = t[1]
		to, label, _ := strings.Cut(raw[t[0]+1:t[1]-1], "|")
		if bot != "" && to == "@"+bot {
			out.mentioned = true
			if strings.HasPrefix(raw[at:], " ") && (b.Len() == 0 || strings.HasSuffix(b.String(), " ")) {
				at++
			}
			continue
		}
		b.WriteString(a.tokenText(ctx, to, label))
	}
	b.WriteString(decodeEntities.Replace(raw[at:]))
	out.text = clean(b.String())
	if out.mentioned {
		out.text = strings.TrimSpace(out.text)
	}
	return out
}

// tokenText is what people see of a token.
func (a *Adapter) tokenText(ctx context.Context, to, label string) string {
	switch {
	case strings.HasPrefix(to, "@"):
		if label == "" {
			label = a.people.name(ctx, to[1:])
		}
		if label == "" {
			label = to[1:]
		}
		return "@" + chat.OneLine(label)
	case strings.HasPrefix(to, "#"):
		if label == "" {
			label = to[1:]
		}
		return "#" + label
	case strings.HasPrefix(to, "!subteam^"):
		return "@" + strings.TrimPrefix(label, "@")
	case strings.HasPrefix(to, "!date"):
		return decodeEntities.Replace(label)
	case strings.HasPrefix(to, "!"):
		name, _, _ := strings.Cut(to[1:], "^")
		return "@" + name
	}
	return address(to, label)
}

// address is a link with the label that it has, if it says something else.
func address(to, label string) string {
	to, label = decodeEntities.Replace(to), decodeEntities.Replace(label)
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(to, "mailto:"), "https://"), "http://")
	if label == "" {
		return to
	}
	if strings.TrimRight(label, "/") == strings.TrimRight(bare, "/") || label == to {
		return label
	}
	return label + " (" + to + ")"
}

// textBlock is what of a block holds text. A field of another shape is passed over.
type textBlock struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	User     string          `json:"user_id"`
	URL      string          `json:"url"`
	Elements json.RawMessage `json:"elements"`
}

// blockText gathers the text of blocks, in Slack's markup.
func blockText(raw json.RawMessage) string {
	var b strings.Builder
	writeBlocks(&b, raw, 0)
	return strings.TrimSpace(b.String())
}

func writeBlocks(b *strings.Builder, raw json.RawMessage, depth int) {
	var list []json.RawMessage
	if depth > 8 || json.Unmarshal(raw, &list) != nil {
		return
	}
	for _, one := range list {
		var t textBlock
		if json.Unmarshal(one, &t) != nil {
			continue
		}
		var object struct {
			Text string `json:"text"`
		}
		switch {
		case t.Type == "user":
			b.WriteString("<@" + t.User + ">")
		case rawString(t.Text) != "" && depth > 0:
			b.WriteString(escape.Replace(rawString(t.Text)))
		case rawString(t.Text) != "":
			b.WriteString(rawString(t.Text))
		case json.Unmarshal(t.Text, &object) == nil:
			b.WriteString(object.Text)
		case t.Type == "link":
			b.WriteString(escape.Replace(t.URL))
		}
		writeBlocks(b, t.Elements, depth+1)
		if depth < 2 {
			b.WriteByte('\n')
		}
	}
}

func attachmentText(list []attachment) string {
	var parts []string
	for _, at := range list {
		switch {
		case at.Share || at.Unfurl:
		case at.Text != "":
			parts = append(parts, at.Text)
		case at.Fallback != "":
			parts = append(parts, at.Fallback)
		}
	}
	return strings.Join(parts, "\n")
}

// quote is a message that somebody forwarded with theirs (MEN-001).
func (a *Adapter) quote(ctx context.Context, m *message) *chat.Quote {
	for _, at := range m.Attachments {
		if !at.Share || at.Text == "" {
			continue
		}
		from := chat.User{ID: person(at.Author), Name: chat.OneLine(at.Name)}
		if at.Author == "" {
			from.ID, from.Shared = "slack:unknown", true
		}
		return &chat.Quote{
			Message: chat.MessageID(rawString(at.TS)), From: from, Text: a.said(ctx, &message{Text: at.Text}).text,
			FromBot: at.Author != "" && at.Author == a.bot().UserID,
		}
	}
	return nil
}

package chatcompletions

import (
	"encoding/json"
	"strings"
)

// details joins the pieces of reasoning_details, which must go back as one list:
// neighbours of the same type and index are one entry whose text grows.
type details struct{ list []*detail }

type detail struct {
	fields        map[string]json.RawMessage
	text, summary strings.Builder
}

// add takes a chunk's pieces and returns their readable text.
func (d *details) add(pieces []json.RawMessage) string {
	var plain strings.Builder
	for _, raw := range pieces {
		var fields map[string]json.RawMessage
		if json.Unmarshal(raw, &fields) != nil || fields == nil {
			continue
		}
		last := len(d.list) - 1
		if last < 0 || !d.list[last].continues(fields) {
			d.list = append(d.list, &detail{fields: map[string]json.RawMessage{}})
			last++
		}
		plain.WriteString(d.list[last].grow(fields))
	}
	return plain.String()
}

func (d *detail) continues(fields map[string]json.RawMessage) bool {
	kind := stringOf(d.fields["type"])
	return kind != "reasoning.encrypted" && kind == stringOf(fields["type"]) &&
		string(d.fields["index"]) == string(fields["index"])
}

// grow adds a piece: text grows, everything else is replaced.
func (d *detail) grow(fields map[string]json.RawMessage) string {
	text, summary := stringOf(fields["text"]), stringOf(fields["summary"])
	d.text.WriteString(text)
	d.summary.WriteString(summary)
	for key, value := range fields {
		if _, had := d.fields[key]; !had || string(value) != "null" {
			d.fields[key] = value
		}
	}
	return text + summary
}

// join returns the list as JSON, nil if it is empty.
func (d *details) join() json.RawMessage {
	if len(d.list) == 0 {
		return nil
	}
	list := make([]map[string]json.RawMessage, len(d.list))
	for i, e := range d.list {
		list[i] = e.fields
		for key, text := range map[string]string{"text": e.text.String(), "summary": e.summary.String()} {
			if raw, err := json.Marshal(text); err == nil && text != "" {
				list[i][key] = raw
			}
		}
	}
	raw, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	return raw
}

func stringOf(raw json.RawMessage) (s string) {
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// thinkTags are what models put around their thinking when the server leaves it in
// the text.
var thinkTags = []string{"think", "thinking", "thought", "reasoning", "REASONING_SCRATCHPAD"}

// thinkFilter takes a thinking block off the beginning of an answer. Tags further
// on are text: a model may speak about them.
type thinkFilter struct {
	state thinkState
	held  string // text that may be (part of) a tag
	tag   string
}

type thinkState uint8

const (
	thinkBefore thinkState = iota // nothing but white space so far
	thinkInside
	thinkAfter // white space between the block and the answer
	thinkNone  // the rest is text
)

// add takes text and returns how much of it is thinking and how much is answer.
func (f *thinkFilter) add(s string) (thought, said string) {
	if f.state == thinkNone {
		return "", s
	}
	f.held += s
	if f.state == thinkBefore {
		f.begin()
	}
	if f.state == thinkInside {
		thought = f.inside()
	}
	if f.state == thinkAfter {
		if f.held = strings.TrimLeft(f.held, " \t\r\n"); f.held != "" {
			f.state = thinkNone
		}
	}
	if f.state == thinkNone {
		said, f.held = f.held, ""
	}
	return thought, said
}

// begin decides whether the answer begins with a tag, as soon as that is certain.
func (f *thinkFilter) begin() {
	text := strings.TrimLeft(f.held, " \t\r\n")
	undecided := text == ""
	for _, tag := range thinkTags {
		open := "<" + tag + ">"
		if rest, ok := strings.CutPrefix(text, open); ok {
			f.state, f.tag, f.held = thinkInside, tag, rest
			return
		}
		undecided = undecided || strings.HasPrefix(open, text)
	}
	if !undecided {
		f.state = thinkNone
	}
}

// inside returns the thinking that is certain, and holds back what may be a tag.
func (f *thinkFilter) inside() string {
	closing := "</" + f.tag + ">"
	if thought, rest, ok := strings.Cut(f.held, closing); ok {
		f.state, f.held = thinkAfter, rest
		return thought
	}
	keep := 0
	for n := min(len(closing)-1, len(f.held)); n > 0; n-- {
		if strings.HasSuffix(f.held, closing[:n]) {
			keep = n
			break
		}
	}
	thought := f.held[:len(f.held)-keep]
	f.held = f.held[len(f.held)-keep:]
	return thought
}

// end returns what was held back.
func (f *thinkFilter) end() (thought, said string) {
	held := f.held
	f.held = ""
	switch f.state {
	case thinkInside:
		return held, ""
	case thinkAfter:
		return "", ""
	default:
		return "", held
	}
}

package fakeslack

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// markdownLimit is what all markdown blocks of a message may hold, and one
// markdown_text, in characters.
const markdownLimit = 12000

// blocksLimit is the ceiling over all blocks that people have met.
const blocksLimit = 13200

// block is one block of a message, with the fields that the fake checks.
type block struct {
	Type     string    `json:"type"`
	BlockID  string    `json:"block_id,omitempty"`
	Text     *text     `json:"text,omitempty"`
	Elements []element `json:"elements,omitempty"`
}

// element is an element of an actions or context block.
type element struct {
	Type     string `json:"type"`
	ActionID string `json:"action_id,omitempty"`
	Text     *text  `json:"text,omitempty"`
	Value    string `json:"value,omitempty"`
	Style    string `json:"style,omitempty"`
}

// text is a text object, or the bare string of a markdown block.
type text struct {
	Type string
	Text string
}

func textOf(markdown string) *text { return &text{"", markdown} }

type textObject struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// UnmarshalJSON takes both forms.
func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &t.Text)
	}
	var o textObject
	err := json.Unmarshal(b, &o)
	t.Type, t.Text = o.Type, o.Text
	return err
}

// MarshalJSON is its inverse.
func (t text) MarshalJSON() ([]byte, error) {
	if t.Type == "" {
		return json.Marshal(t.Text)
	}
	return json.Marshal(textObject(t))
}

func (t *text) length() int {
	if t == nil {
		return 0
	}
	return utf8.RuneCountInString(t.Text)
}

// UnmarshalJSON takes elements that are texts themselves: the elements of a context
// block.
func (e *element) UnmarshalJSON(b []byte) error {
	var in struct {
		Type     string          `json:"type"`
		ActionID string          `json:"action_id"`
		Text     json.RawMessage `json:"text"`
		Value    string          `json:"value"`
		Style    string          `json:"style"`
	}
	if err := json.Unmarshal(b, &in); err != nil {
		return err
	}
	*e = element{Type: in.Type, ActionID: in.ActionID, Value: in.Value, Style: in.Style}
	if len(in.Text) == 0 {
		return nil
	}
	e.Text = &text{}
	if err := json.Unmarshal(in.Text, e.Text); err != nil {
		return err
	}
	if e.Text.Type == "" {
		e.Text.Type = in.Type
	}
	return nil
}

// MarshalJSON is its inverse.
func (e element) MarshalJSON() ([]byte, error) {
	if e.Type == "mrkdwn" || e.Type == "plain_text" {
		return json.Marshal(textObject{e.Type, e.Text.Text})
	}
	type plain element
	return json.Marshal(plain(e))
}

// invalid is the refusal of a block with its reason.
func invalid(what string) error {
	return &refusal{Word: "invalid_blocks", Messages: []string{"[ERROR] " + what}}
}

// checkBlocks holds blocks to Slack's rules.
func checkBlocks(list []block) error {
	if len(list) > 50 {
		return invalid("no more than 50 items allowed [json-pointer:/blocks]")
	}
	all, markdown := 0, 0
	ids := map[string]bool{}
	for _, b := range list {
		if b.BlockID != "" && ids[b.BlockID] || len(b.BlockID) > 255 {
			return invalid("block_id must be unique and at most 255 characters")
		}
		ids[b.BlockID] = true
		all += b.Text.length()
		switch b.Type {
		case "markdown":
			if markdown += b.Text.length(); b.Text.length() == 0 || b.Text.Type != "" {
				return invalid("a markdown block needs a text")
			}
		case "section":
			if n := b.Text.length(); n == 0 || n > 3000 || b.Text.Type != "mrkdwn" && b.Text.Type != "plain_text" {
				return invalid("a section needs a text object of 1 to 3000 characters")
			}
		case "context":
			if len(b.Elements) == 0 || len(b.Elements) > 10 {
				return invalid("a context block needs 1 to 10 elements")
			}
			for _, e := range b.Elements {
				if all += e.Text.length(); e.Text.length() == 0 || e.Text.length() > 3000 {
					return invalid("a context element needs a text of 1 to 3000 characters")
				}
			}
		case "actions":
			if err := checkActions(b); err != nil {
				return err
			}
		case "divider":
		default:
			return invalid("unsupported type: " + b.Type)
		}
	}
	switch {
	case markdown > markdownLimit:
		return invalid("the markdown blocks have more than 12000 characters")
	case all > blocksLimit:
		return refuse("msg_blocks_too_long")
	}
	return nil
}

func checkActions(b block) error {
	if len(b.Elements) == 0 || len(b.Elements) > 25 {
		return invalid("an actions block needs 1 to 25 elements")
	}
	ids := map[string]bool{}
	for _, e := range b.Elements {
		switch {
		case e.Type != "button":
			return invalid("unsupported element: " + e.Type)
		case e.ActionID == "" || len(e.ActionID) > 255 || ids[e.ActionID]:
			return invalid("action_id must be unique in its block and at most 255 characters")
		case e.Text.length() == 0 || e.Text.length() > 75 || e.Text.Type != "plain_text":
			return invalid("a button needs a plain_text of 1 to 75 characters")
		case utf8.RuneCountInString(e.Value) > 2000:
			return invalid("a button's value has at most 2000 characters")
		case e.Style != "" && e.Style != "primary" && e.Style != "danger":
			return invalid("style must be primary or danger")
		}
		ids[e.ActionID] = true
	}
	return nil
}

// shown is what people read of a message, without markup.
func (m *message) shown() string {
	if len(m.blocks) == 0 {
		return plainMrkdwn(m.text)
	}
	var parts []string
	for _, b := range m.blocks {
		switch b.Type {
		case "markdown":
			parts = append(parts, plainMarkdown(b.Text.Text))
		case "section":
			parts = append(parts, b.Text.plain())
		case "context":
			for _, e := range b.Elements {
				parts = append(parts, e.Text.plain())
			}
		}
	}
	return strings.Join(parts, "\n")
}

func (t *text) plain() string {
	if t.Type == "plain_text" {
		return t.Text
	}
	return plainMrkdwn(t.Text)
}

// buttons are the buttons below a message, by row.
func (m *message) buttons() [][]Button {
	var rows [][]Button
	for _, b := range m.blocks {
		if b.Type != "actions" {
			continue
		}
		var row []Button
		for _, e := range b.Elements {
			row = append(row, Button{Label: e.Text.Text, Value: e.Value, Style: e.Style})
		}
		rows = append(rows, row)
	}
	return rows
}

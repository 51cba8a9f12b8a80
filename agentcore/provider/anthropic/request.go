package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

const (
	// maxID is the longest tool call id that is sent as it is.
	maxID = 64
	// maxImage bounds an encoded image (5 MB).
	maxImage = 5 << 20
	// maxImages is how many images a request may have. Older ones are retired
	// retireStep at a time, so that not each new image changes the cached prefix.
	maxImages  = 100
	retireStep = 20

	retiredNotice = "(an older image was left out)"
)

// body is the request as it is sent. What grows stands at the end of what stays, and
// what may differ between two calls of a conversation behind it.
type body struct {
	Model        string    `json:"model"`
	Tools        []*tool   `json:"tools,omitempty"`
	System       []*block  `json:"system,omitempty"`
	Messages     []*turn   `json:"messages"`
	ToolChoice   *choice   `json:"tool_choice,omitempty"`
	Thinking     *thinking `json:"thinking,omitempty"`
	OutputConfig *output   `json:"output_config,omitempty"`
	MaxTokens    int       `json:"max_tokens"`
	Stream       bool      `json:"stream"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type turn struct {
	Role string `json:"role"`
	// Content holds *block, and json.RawMessage for what goes back as it came.
	Content []any `json:"content"`
}

type block struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Source       *source         `json:"source,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      []*block        `json:"content,omitempty"`
	CacheControl *cacheControl   `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

type choice struct {
	Type string `json:"type"`
}

func textBlock(s string) *block { return &block{Type: "text", Text: s} }

// newBody translates a request. The messages must be legal already; what is mended
// here is the form only.
func (c *Client) newBody(req *llm.Request, q quirk) *body {
	t := &translation{issuer: string(req.Model), quirks: q, ids: wire.NewIDs(wire.IDRule{Max: maxID})}
	for _, m := range req.Messages {
		t.add(m)
	}
	t.retire()
	b := &body{Model: modelName(req.Model), Messages: t.turns, MaxTokens: req.MaxOutput, Stream: true}
	if b.MaxTokens == 0 {
		b.MaxTokens = llm.FactsOf(req.Model, nil).MaxOutput
	}
	if !wire.Blank(req.System) {
		b.System = []*block{textBlock(req.System)}
	}
	b.tools(req, q)
	b.think(req.Reasoning, q)
	if !q.has(quirkNoCache) {
		b.mark()
	}
	if n := len(b.Messages); n > 0 && req.Ephemeral != "" {
		b.Messages[n-1].Content = append(b.Messages[n-1].Content, textBlock(req.Ephemeral))
	}
	return b
}

// modelName is how the API writes a model: without a router's prefix, versions with
// hyphens.
func modelName(m llm.ModelID) string {
	_, name := m.Split()
	name = strings.TrimPrefix(name, "anthropic/")
	if strings.HasPrefix(name, "claude-") {
		name = strings.ReplaceAll(name, ".", "-")
	}
	return name
}

func (b *body) tools(req *llm.Request, q quirk) {
	if req.NoTools && q.has(quirkNoToolChoice) {
		return
	}
	for _, t := range req.Tools {
		known := func(u *tool) bool { return u.Name == t.Name }
		if !slices.ContainsFunc(b.Tools, known) {
			b.Tools = append(b.Tools, &tool{Name: t.Name, Description: t.Description, InputSchema: inputSchema(t.Schema)})
		}
	}
	if req.NoTools && len(b.Tools) > 0 {
		b.ToolChoice = &choice{"none"}
	}
}

// inputSchema is a schema as the API takes it: of an object with properties, and no
// choice between several at the top.
func inputSchema(schema json.RawMessage) json.RawMessage {
	var s map[string]json.RawMessage
	if len(schema) == 0 || json.Unmarshal(schema, &s) != nil || s == nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	changed := false
	for _, key := range []string{"oneOf", "anyOf", "allOf"} {
		changed = changed || s[key] != nil
		delete(s, key)
	}
	for key, value := range map[string]string{"type": `"object"`, "properties": `{}`} {
		if s[key] == nil || key == "type" && string(s[key]) != value {
			s[key], changed = json.RawMessage(value), true
		}
	}
	if !changed {
		return schema
	}
	out, err := wire.Encode(s)
	if err != nil {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return out
}

// translation is the state of translating a history.
type translation struct {
	issuer string
	quirks quirk
	ids    *wire.IDs
	turns  []*turn
	images []*block
}

func (t *translation) add(m llm.Message) {
	switch m.Role {
	case llm.Assistant:
		t.assistant(m)
	case llm.ToolRole:
		t.user(&block{Type: "tool_result", ToolUseID: t.ids.Result(m.ToolCallID), Content: t.parts(m, wire.EmptyResult)})
	default:
		t.user(t.parts(m, wire.EmptyMessage)...)
	}
}

// user adds blocks to the user's turn: results, and what is said after them, are one
// turn.
func (t *translation) user(blocks ...*block) {
	n := len(t.turns) - 1
	if n < 0 || t.turns[n].Role != "user" {
		t.turns = append(t.turns, &turn{Role: "user"})
		n++
	}
	for _, b := range blocks {
		t.turns[n].Content = append(t.turns[n].Content, b)
	}
}

// assistant says an answer as it was given. It may not end with a thought.
func (t *translation) assistant(m llm.Message) {
	pieces, _ := wire.LayoutOf(m, t.issuer)
	t.ids.Turn()
	a := &turn{Role: "assistant"}
	said := false
	pieces.Walk(m, func(p wire.Piece, text string, call *llm.ToolCall) {
		switch {
		case call != nil:
			a.Content = append(a.Content, &block{
				Type: "tool_use", ID: t.ids.Call(call.ID), Name: wire.ToolName(call.Name), Input: json.RawMessage(wire.Arguments(call.Arguments)),
			})
			said = true
		case len(p.Item) > 0 && !t.quirks.has(quirkNoReplay):
			a.Content = append(a.Content, p.Item)
			said = false
		case !wire.Blank(text):
			a.Content = append(a.Content, textBlock(text))
			said = true
		}
	})
	if !said {
		a.Content = append(a.Content, textBlock(wire.EmptyMessage))
	}
	t.turns = append(t.turns, a)
}

// parts returns the message's parts that are not blank, or else the placeholder.
func (t *translation) parts(m llm.Message, placeholder string) (out []*block) {
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			out = append(out, t.image(p.Image))
		case !wire.Blank(p.Text):
			out = append(out, textBlock(p.Text))
		}
	}
	if len(out) == 0 {
		out = append(out, textBlock(placeholder))
	}
	return out
}

func (t *translation) image(i *llm.Image) *block {
	if t.quirks.has(quirkNoImages) {
		return textBlock(wire.BlindNotice)
	}
	mime, data, notice := wire.Picture(i, maxImage)
	if notice != "" {
		return textBlock(notice)
	}
	b := &block{Type: "image", Source: &source{"base64", mime, data}}
	t.images = append(t.images, b)
	return b
}

// retire puts the oldest images into words when there are too many.
func (t *translation) retire() {
	over := len(t.images) - maxImages
	if over <= 0 {
		return
	}
	steps := (over + retireStep - 1) / retireStep
	for _, b := range t.images[:min(steps*retireStep, len(t.images))] {
		*b = *textBlock(retiredNotice)
	}
}

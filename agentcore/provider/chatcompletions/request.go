package chatcompletions

import (
	"encoding/json"

	openai "github.com/sashabaranov/go-openai"

	"parley/agentcore/llm"
	"parley/agentcore/provider/wire"
)

// maxID is the longest tool call id that OpenAI takes.
const maxID = 40

// resultImages comes before the images of tool results, which take text only.
const resultImages = "Images from the tool results above:"

// maxImage bounds an encoded image, as OpenAI does.
const maxImage = 20 << 20

// body is the request as it is sent. It adds to the library's struct what that
// cannot say: extra fields of messages and calls, and the cache key. Its tools are
// those of chat completions only, since the library's are encoded several times over.
type body struct {
	openai.ChatCompletionRequest
	Messages       []message `json:"messages"`
	Tools          []tool    `json:"tools,omitempty"`
	PromptCacheKey string    `json:"prompt_cache_key,omitempty"`
}

type tool struct {
	Type     openai.ToolType           `json:"type"`
	Function openai.FunctionDefinition `json:"function"`
}

// outline is what the library looks at before it sends: that there are tools, not
// which. What it makes of it is not sent.
func (b *body) outline() openai.ChatCompletionRequest {
	r := b.ChatCompletionRequest
	r.Tools = make([]openai.Tool, len(b.Tools))
	return r
}

type message struct {
	Role string `json:"role"`
	// Content is a string, a list of parts, or nil.
	Content    any        `json:"content,omitempty"`
	ToolCalls  []toolCall `json:"tool_calls,omitempty"`
	ToolCallID string     `json:"tool_call_id,omitempty"`
	replay
}

// replay is what a server wants back as it gave it. Its JSON is what Reasoning.Raw
// holds.
type replay struct {
	ReasoningContent *string         `json:"reasoning_content,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
}

type toolCall struct {
	ID           string              `json:"id"`
	Type         string              `json:"type"`
	Function     openai.FunctionCall `json:"function"`
	ExtraContent json.RawMessage     `json:"extra_content,omitempty"`
}

// newBody translates a request. The messages must be legal already; what is
// mended here is the form only.
func (c *Client) newBody(req *llm.Request, q quirk) *body {
	_, model := req.Model.Split()
	b := &body{Messages: c.messages(req, q)}
	b.Model = model
	b.tools(req, q)
	b.Stream = !q.has(quirkNoToolStream) || len(b.Tools) == 0
	if b.Stream && !q.has(quirkNoStreamOptions) {
		b.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if !q.has(quirkNoEffort) {
		b.ReasoningEffort = req.Reasoning
	}
	if c.dialect.cacheKey && !q.has(quirkNoCacheKey) {
		b.PromptCacheKey = req.CacheKey
	}
	if c.completionTokens(model, q) {
		b.MaxCompletionTokens = req.MaxOutput
	} else {
		b.MaxTokens = req.MaxOutput //nolint:staticcheck // deprecated at OpenAI, the only name elsewhere
	}
	return b
}

// completionTokens says which of the two names of the limit the model takes.
func (c *Client) completionTokens(model string, q quirk) bool {
	switch {
	case q.has(quirkCompletionTokens):
		return true
	case q.has(quirkMaxTokens):
		return false
	}
	return c.dialect.completionTokens || reasoningModel(model)
}

func (b *body) tools(req *llm.Request, q quirk) {
	if req.NoTools && q.has(quirkNoToolChoice) {
		return
	}
	for _, t := range req.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		b.Tools = append(b.Tools, tool{openai.ToolTypeFunction, openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: schema}})
	}
	if req.NoTools && len(b.Tools) > 0 {
		b.ToolChoice = "none"
	}
}

// translation is the state of translating a history.
type translation struct {
	client *Client
	issuer string
	quirks quirk
	ids    *wire.IDs
	out    []message
	// images of tool results wait for the next user message, since a tool message
	// takes text only (PRV-031).
	images []openai.ChatMessagePart
}

func (c *Client) messages(req *llm.Request, q quirk) []message {
	t := &translation{
		client: c, issuer: string(req.Model), quirks: q, ids: wire.NewIDs(wire.IDRule{Max: maxID, Short: c.dialect.shortIDs}),
		out: make([]message, 0, len(req.Messages)+2),
	}
	if req.System != "" {
		t.out = append(t.out, message{Role: string(llm.System), Content: req.System})
	}
	for i, m := range req.Messages {
		ephemeral := ""
		if i == len(req.Messages)-1 {
			ephemeral = req.Ephemeral
		}
		t.add(m, ephemeral)
	}
	t.flushImages()
	return t.out
}

func (t *translation) add(m llm.Message, ephemeral string) {
	switch m.Role {
	case llm.ToolRole:
		t.toolResult(m, ephemeral)
	case llm.Assistant:
		t.flushImages()
		t.assistant(m)
	default:
		t.out = append(t.out, message{Role: string(m.Role), Content: t.said(m, ephemeral)})
	}
}

// said is the content of a user message, after the images that wait for it.
func (t *translation) said(m llm.Message, ephemeral string) any {
	if len(t.images) == 0 && len(m.Parts) == 1 && m.Parts[0].Image == nil && ephemeral == "" && !wire.Blank(m.Parts[0].Text) {
		return m.Parts[0].Text // as most messages are
	}
	parts := append(t.images, t.parts(m)...)
	t.images = nil
	return content(parts, ephemeral)
}

func (t *translation) toolResult(m llm.Message, ephemeral string) {
	text := m.Text()
	if wire.Blank(text) {
		text = wire.EmptyResult // the library's own struct would leave the field out
	}
	for _, p := range m.Parts {
		if p.Image == nil {
			continue
		}
		if image := t.image(p.Image); image.ImageURL != nil {
			t.images = append(t.images, image)
		}
	}
	t.out = append(t.out, message{
		Role: string(llm.ToolRole), ToolCallID: t.ids.Result(m.ToolCallID), Content: wire.Paragraphs(text, ephemeral),
	})
}

func (t *translation) flushImages() {
	if len(t.images) == 0 {
		return
	}
	parts := append([]openai.ChatMessagePart{textPart(resultImages)}, t.images...)
	t.images = nil
	t.out = append(t.out, message{Role: string(llm.User), Content: parts})
}

func (t *translation) assistant(m llm.Message) {
	w := message{Role: string(llm.Assistant), replay: t.replayed(m)}
	if text := m.Text(); !wire.Blank(text) {
		w.Content = text
	}
	t.ids.Turn()
	for _, call := range m.ToolCalls {
		tc := toolCall{ID: t.ids.Call(call.ID), Type: "function", Function: openai.FunctionCall{
			Name: wire.ToolName(call.Name), Arguments: wire.Arguments(call.Arguments),
		}}
		if call.Issuer == t.issuer && !t.quirks.has(quirkNoReplay) {
			tc.ExtraContent = call.Extra
		}
		w.ToolCalls = append(w.ToolCalls, tc)
	}
	if w.Content == nil && len(w.ToolCalls) == 0 {
		w.Content = wire.EmptyMessage
	}
	t.out = append(t.out, w)
}

// replayed gives reasoning back to the model that it came from, and to no other
// (PRV-026). Some servers want the field on every assistant message (PRV-016).
func (t *translation) replayed(m llm.Message) (r replay) {
	if t.quirks.has(quirkNoReplay) {
		return replay{}
	}
	if m.Reasoning != nil && len(m.Reasoning.Raw) > 0 && m.Reasoning.Issuer == t.issuer {
		if err := json.Unmarshal(m.Reasoning.Raw, &r); err != nil {
			r = replay{}
		}
	}
	if t.client.dialect.reasoningContent && r.ReasoningContent == nil {
		r.ReasoningContent = new(string)
	}
	return r
}

// parts returns the message's parts that are not blank.
func (t *translation) parts(m llm.Message) (out []openai.ChatMessagePart) {
	for _, p := range m.Parts {
		switch {
		case p.Image != nil:
			out = append(out, t.image(p.Image))
		case !wire.Blank(p.Text):
			out = append(out, textPart(p.Text))
		}
	}
	return out
}

// image is an image, or the words that stand for it.
func (t *translation) image(i *llm.Image) openai.ChatMessagePart {
	if t.quirks.has(quirkNoImages) {
		return textPart(wire.BlindNotice)
	}
	return imagePart(i)
}

// content is a plain string where it can be one, since not every server takes
// lists of text.
func content(parts []openai.ChatMessagePart, ephemeral string) any {
	var text string
	for _, p := range parts {
		if p.ImageURL != nil {
			if ephemeral != "" {
				parts = append(parts, textPart(ephemeral))
			}
			return parts
		}
		text = wire.Paragraphs(text, p.Text)
	}
	if text = wire.Paragraphs(text, ephemeral); text == "" {
		return wire.EmptyMessage
	}
	return text
}

func imagePart(i *llm.Image) openai.ChatMessagePart {
	mime, data, notice := wire.Picture(i, maxImage)
	if notice != "" {
		return textPart(notice)
	}
	return openai.ChatMessagePart{
		Type: openai.ChatMessagePartTypeImageURL, ImageURL: &openai.ChatMessageImageURL{URL: "data:" + mime + ";base64," + data},
	}
}

func textPart(s string) openai.ChatMessagePart {
	return openai.ChatMessagePart{Type: openai.ChatMessagePartTypeText, Text: s}
}
